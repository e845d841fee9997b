"""Content keys on a database: the handlers, and short ways to call them."""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

from api.wiring.core import Core
from domain.content_key.handlers import ContentKeyHandlers, KeyRequest, PlainKey
from domain.kernel.encryption import SecretCipher
from domain.kernel.ports import Invocation
from projections.content_key.queries import ContentKeyQueries
from projections.kernel.database.database import Database
from projections.vault.vault import Vault

MASTER = bytes(32)
KID = UUID("98ee5596-cd3e-a20d-163a-e382420c6eff")
SYSTEM = Invocation.by("system")


def handlers_on(inner: Core, *, cipher: SecretCipher | None = None, database: Database | None = None) -> ContentKeyHandlers:
    vault = Vault(inner.database, cipher or SecretCipher(MASTER))
    return ContentKeyHandlers(inner.executor, ContentKeyQueries(database or inner.database), vault=vault, random=os.urandom)


def key_request(content_id: str = "movie-1", client: str = "studio", **more: Any) -> KeyRequest:
    return KeyRequest(client, content_id, **more)


async def issue(handlers: ContentKeyHandlers, *requests: KeyRequest) -> list[PlainKey]:
    return await handlers.issue(requests, invocation=Invocation.by("studio", correlation_id="t-1"))


async def issue_one(handlers: ContentKeyHandlers, request: KeyRequest) -> PlainKey:
    [key] = await issue(handlers, request)
    return key


def values(key: PlainKey) -> tuple[UUID, bytes, bytes]:
    """All that the packager gets: not whether the key is new."""
    return key.kid, key.key, key.iv


async def topics(inner: Core) -> list[str]:
    return [topic for (topic,) in await inner.database.rows("SELECT topic FROM events ORDER BY position")]


async def let_an_hour_pass(inner: Core) -> None:
    """Make an hour pass since the last event of each key."""
    await inner.database.execute(
        "WITH locked AS MATERIALIZED (SELECT key FROM content_key_usage ORDER BY key FOR UPDATE)"
        " UPDATE content_key_usage SET due_at = '-infinity' FROM locked WHERE content_key_usage.key = locked.key"
    )
