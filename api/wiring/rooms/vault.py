"""The vault: secrets that no event may hold."""

from __future__ import annotations

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.kernel.encryption import SecretCipher
from projections.kernel.database import Database
from projections.kernel.migrate import Migration
from projections.vault.vault import Vault


def _services(services: Services) -> Providers:
    return {Vault: lambda: Vault(services.get(Database), services.get(SecretCipher))}


VAULT = Room(name="vault", migrations=(Migration.read("0006 vault", "vault/schema.sql"),), services=_services)
