"""The directory of clients: authenticates API keys and answers questions about clients, from a cache of all clients.

The cache is at most `FRESH` seconds old. A change made in this process, or in one that shares its `ClientChanges`, takes effect at
once; one made elsewhere (in a shell or on another machine) within that time.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from pydantic_core import from_json

from domain.client.aggregate import ApiKey
from domain.client.names import DEMO_LOADER
from domain.drm.settings import DrmSettings
from domain.kernel.clock import Clock
from projections.client.changes import ClientChanges
from projections.kernel.database.database import Database

FRESH = 1.0
_MISS_PAUSE = 0.1
_STORE_EVERY = 60.0
_ADMINS = 0x61646D696E
"""The advisory lock of `admin_lock`."""


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client that is not deleted."""

    name: str
    version: int
    roles: tuple[str, ...]
    keys: tuple[ApiKey, ...]
    created_at: datetime
    drm: DrmSettings
    trust_actor: bool = False


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A key with its client."""

    key_hash: str
    key: ApiKey
    client: ClientRow


class ClientDirectory:
    """Authenticates API keys and looks up clients."""

    def __init__(self, database: Database, clock: Clock, *, changes: ClientChanges | None = None) -> None:
        self._database = database
        self._clock = clock
        self._changes = changes or ClientChanges()
        self._seen = self._changes.seen
        self._by_hash: dict[str, ClientKey] = {}
        self._by_id: dict[str, ClientKey] = {}
        self._by_name: dict[str, ClientRow] = {}
        self._state: tuple[int, int] = (-1, -1)
        self._loaded_at = float("-inf")
        self._invalidations = 0
        self._loaded_clock = clock()
        self._loading = asyncio.Lock()
        self._admin_lock = asyncio.Lock()
        self._last_used: dict[str, datetime] = {}
        self._stored: dict[str, datetime] = {}

    async def authenticate(self, key: str) -> ClientRow | None:
        """Return the client of this key; None if the key is unknown or has expired."""
        client_key = await self.find_key(key)
        return client_key.client if client_key is not None else None

    async def find_key(self, key: str) -> ClientKey | None:
        """Return the key with its client; None if the key is unknown or has expired."""
        key_hash = sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        await self._refresh()
        client_key = self._by_hash.get(key_hash)
        if client_key is None:
            await self._load(_MISS_PAUSE)
            client_key = self._by_hash.get(key_hash)
        if client_key is None or not hmac.compare_digest(client_key.key_hash, key_hash):
            return None
        return self._note_use(client_key)

    async def key_by_id(self, key_id: str) -> ClientKey | None:
        """Return the key with this id; None if it does not exist any more or has expired."""
        await self._refresh()
        client_key = self._by_id.get(key_id)
        return None if client_key is None else self._note_use(client_key)

    def _note_use(self, client_key: ClientKey) -> ClientKey | None:
        if client_key.key.expires_at is not None and not client_key.key.usable(self._clock()):
            return None
        self._last_used[client_key.key.key_id] = self._loaded_clock
        return client_key

    async def roles_of(self, name: str) -> tuple[str, ...]:
        """Return the roles of a client from the cache; empty if there is no client of this name."""
        await self._refresh()
        client = self._by_name.get(name)
        return client.roles if client is not None else ()

    def drm_of(self, name: str) -> DrmSettings:
        """Return the DRM settings of a client that was just authenticated, from the cache."""
        client = self._by_name.get(name)
        return client.drm if client is not None else DrmSettings()

    def invalidate(self) -> None:
        """Mark the caches as outdated after a change of clients, here and in the processes that share `ClientChanges`."""
        self._changes.add()

    async def _refresh(self) -> None:
        if (seen := self._changes.seen) != self._seen:
            self._seen = seen
            self._loaded_at = float("-inf")
            self._invalidations += 1
        if time.monotonic() - self._loaded_at > FRESH:
            await self._load(FRESH)

    async def _load(self, fresh: float) -> None:
        async with self._loading:
            if time.monotonic() - self._loaded_at <= fresh:
                return
            started, invalidations = time.monotonic(), self._invalidations
            self._loaded_clock = self._clock()
            state = await self._database.row("SELECT count(*), coalesce(sum(version), 0)::bigint FROM client_view")
            if state is not None and (state[0], state[1]) != self._state:
                clients = await self.all()
                self._by_hash = {key.key_hash: ClientKey(key.key_hash, key, client) for client in clients for key in client.keys}
                self._by_id = {client_key.key.key_id: client_key for client_key in self._by_hash.values()}
                self._by_name = {client.name: client for client in clients}
                self._state = (state[0], state[1])
            if invalidations == self._invalidations:  # otherwise a change arrived during the load, and may be missing
                self._loaded_at = started

    async def all(self) -> list[ClientRow]:
        return await self._select("", ())

    async def find(self, name: str) -> ClientRow | None:
        rows = await self._select(" AND name = %s", (name,))
        return rows[0] if rows else None

    @asynccontextmanager
    async def admin_lock(self) -> AsyncIterator[None]:
        """Take a lock in all processes, held while a command depends on `other_admins`. Without it two admins could delete each
        other at the same moment."""
        async with self._admin_lock, self._database.connection() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADMINS,))
            yield

    async def other_admins(self, name: str) -> bool:
        """Return True if another client with the role admin has a key that does not expire. The demo's client does not count,
        because it is removed with the demo."""
        return any(
            "admin" in client.roles and any(key.expires_at is None for key in client.keys)
            for client in await self.all()
            if client.name not in (name, DEMO_LOADER)
        )

    async def _select(self, condition: str, parameters: Sequence[str]) -> list[ClientRow]:
        rows = await self._database.rows(
            "SELECT name, version, roles, keys, registered_at, drm, trust_actor FROM client_view "
            f"WHERE NOT deleted{condition} ORDER BY name",
            parameters,
        )
        return [
            ClientRow(
                name,
                version,
                tuple(from_json(roles)),
                tuple(map(_key, from_json(keys))),
                registered_at,
                DrmSettings(**from_json(drm)),
                trust_actor,
            )
            for name, version, roles, keys, registered_at, drm, trust_actor in rows
        ]

    async def last_used(self, key_ids: Sequence[str]) -> dict[str, datetime]:
        """Return the times when keys were last used, accurate to the minute for uses in another process."""
        rows = await self._database.rows("SELECT key_id, last_used_at FROM api_key_usage WHERE key_id = ANY(%s)", (list(key_ids),))
        return {**dict(rows), **{key_id: self._last_used[key_id] for key_id in key_ids if key_id in self._last_used}}

    async def store_usage(self) -> None:
        """Store the times of use, at most once a minute for each key."""
        due = {
            key_id: at
            for key_id, at in self._last_used.items()
            if key_id not in self._stored or (at - self._stored[key_id]).total_seconds() >= _STORE_EVERY
        }
        for key_id, at in due.items():
            await self._database.execute(
                "INSERT INTO api_key_usage (key_id, last_used_at) VALUES (%s, %s) ON CONFLICT (key_id) "
                "DO UPDATE SET last_used_at = greatest(api_key_usage.last_used_at, excluded.last_used_at)",
                (key_id, at),
            )
        self._stored.update(due)


def _key(stored: dict[str, str]) -> ApiKey:
    expires = stored.get("expires_at")
    return ApiKey(
        stored["key_id"],
        stored["key_hash"],
        datetime.fromisoformat(stored["created_at"]),
        datetime.fromisoformat(expires) if expires else None,
    )
