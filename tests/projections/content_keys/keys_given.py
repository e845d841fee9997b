"""Content keys on a core, and ways to ask for them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.core import Core
from domain.kernel.cause import Cause
from domain.kernel.sealed import Sealer
from projections.content_keys.store import ContentKeys, KeyAsked, KeyGiven
from projections.kernel.database import Database
from projections.vault.vault import Vault

MASTER = bytes(32)
KID = UUID("98ee5596-cd3e-a20d-163a-e382420c6eff")


def keys_on(inner: Core, *, sealer: Sealer | None = None, database: Database | None = None) -> ContentKeys:
    vault = Vault(inner.database, sealer or Sealer(MASTER))
    return ContentKeys(database or inner.database, ledger=inner.ledger, vault=vault, clock=inner.clock)


def asked(content_id: str = "movie-1", client: str = "studio", **more: Any) -> KeyAsked:
    return KeyAsked(client, content_id, **more)


async def given(keys: ContentKeys, *questions: KeyAsked) -> list[KeyGiven]:
    return await keys.give(questions, cause=Cause.by("studio", correlation_id="t-1"))


async def one(keys: ContentKeys, question: KeyAsked) -> KeyGiven:
    [key] = await given(keys, question)
    return key


def told(key: KeyGiven) -> tuple[UUID, bytes, bytes]:
    """What the caller is told: all but whether it was the first."""
    return key.kid, key.key, key.iv


async def topics(inner: Core) -> list[str]:
    return [topic for (topic,) in await inner.database.rows("SELECT topic FROM events ORDER BY position")]
