"""The vault: secrets that must not be in events."""

from __future__ import annotations

from api.wiring.room import Room
from domain.kernel import ports
from projections.kernel.schema.migrate import Grant, Migration
from projections.vault.vault import Vault

VAULT = Room(
    name="vault",
    migrations=(Migration.read("0006 vault", "vault/schema.sql"), Migration.read("0050 named master keys", "vault/named_keys.sql")),
    grants=(Grant("TABLE master_keys", "SELECT, INSERT"), Grant("TABLE master_key_ids", "SELECT, INSERT")),
    services={ports.Vault: Vault},
)
