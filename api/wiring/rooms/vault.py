"""The vault: secrets that must not be in events."""

from __future__ import annotations

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.kernel.encryption import SecretCipher
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.vault.vault import Vault


def _services(services: Services) -> Providers:
    return {Vault: lambda: Vault(services.get(Database), services.get(SecretCipher))}


VAULT = Room(
    name="vault",
    migrations=(Migration.read("0006 vault", "vault/schema.sql"), Migration.read("0050 named master keys", "vault/named_keys.sql")),
    grants=(Grant("TABLE master_keys", "SELECT, INSERT"), Grant("TABLE master_key_ids", "SELECT, INSERT")),
    services=_services,
)
