"""Who is calling, and how its content keys are answered: every client with its keys' hashes, kept in memory and never older than
a second.

A change made through this process is seen at once (`forget`), one made through another within `FRESH` seconds.
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
from domain.drm.settings import DrmSettings
from domain.kernel.clock import Clock
from projections.kernel.database import Database

FRESH = 1.0
_MISS_PAUSE = 0.1
_USE_EVERY = 60.0
_ADMINS = 0x61646D696E
"""The advisory lock of `alone`."""


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client as it stands."""

    name: str
    version: int
    roles: tuple[str, ...]
    keys: tuple[ApiKey, ...]
    created_at: datetime
    drm: DrmSettings


@dataclass(frozen=True, slots=True)
class _Held:
    key_hash: str
    key: ApiKey
    client: ClientRow


class ClientDirectory:
    """Authenticates keys and answers questions about clients."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._named: dict[str, ClientRow] = {}
        self._state: tuple[int, int] = (-1, -1)
        self._loaded_at = float("-inf")
        self._forgotten = 0
        self._looked_at = clock()
        self._loading = asyncio.Lock()
        self._deciding = asyncio.Lock()
        self._used: dict[str, datetime] = {}
        self._written: dict[str, datetime] = {}

    async def authenticate(self, key: str) -> ClientRow | None:
        """The client that holds this key, if it is usable now."""
        key_hash = sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        if time.monotonic() - self._loaded_at > FRESH:
            await self._load(FRESH)
        held = self._held.get(key_hash)
        if held is None:
            await self._load(_MISS_PAUSE)
            held = self._held.get(key_hash)
        if held is None or not hmac.compare_digest(held.key_hash, key_hash):
            return None
        if held.key.expires_at is not None and not held.key.usable(self._clock()):
            return None
        self._used[held.key.key_id] = self._looked_at
        return held.client

    def drm_of(self, name: str) -> DrmSettings:
        """The settings of a client that was just authenticated. From memory."""
        client = self._named.get(name)
        return client.drm if client is not None else DrmSettings()

    def forget(self) -> None:
        """Something about clients has changed: look again before the next answer."""
        self._loaded_at = float("-inf")
        self._forgotten += 1

    async def _load(self, fresh: float) -> None:
        async with self._loading:
            if time.monotonic() - self._loaded_at <= fresh:
                return
            started, forgotten = time.monotonic(), self._forgotten
            self._looked_at = self._clock()
            state = await self._database.row("SELECT count(*), coalesce(sum(version), 0)::bigint FROM client_view")
            if state is not None and (state[0], state[1]) != self._state:
                clients = await self.all()
                self._held = {key.key_hash: _Held(key.key_hash, key, client) for client in clients for key in client.keys}
                self._named = {client.name: client for client in clients}
                self._state = (state[0], state[1])
            if forgotten == self._forgotten:  # else a change came while we looked, perhaps too late to be seen
                self._loaded_at = started

    async def all(self) -> list[ClientRow]:
        return await self._those("", ())

    async def find(self, name: str) -> ClientRow | None:
        found = await self._those(" AND name = %s", (name,))
        return found[0] if found else None

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Held while a command rests on who else is admin, in all processes: two admins who remove each other at the same
        moment must not both succeed."""
        async with self._deciding, self._database.connection() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADMINS,))
            yield

    async def other_admins(self, name: str) -> bool:
        """Whether somebody else with role admin holds a key that does not expire."""
        return any(
            "admin" in client.roles and any(key.expires_at is None for key in client.keys)
            for client in await self.all()
            if client.name != name
        )

    async def _those(self, condition: str, parameters: Sequence[str]) -> list[ClientRow]:
        rows = await self._database.rows(
            f"SELECT name, version, roles, keys, registered_at, drm FROM client_view WHERE NOT removed{condition} ORDER BY name",
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
            )
            for name, version, roles, keys, registered_at, drm in rows
        ]

    async def last_used(self, key_ids: Sequence[str]) -> dict[str, datetime]:
        """When keys were last used, to the minute where another process saw them."""
        rows = await self._database.rows("SELECT key_id, last_used_at FROM key_use WHERE key_id = ANY(%s)", (list(key_ids),))
        return {**dict(rows), **{key_id: self._used[key_id] for key_id in key_ids if key_id in self._used}}

    async def write_use(self) -> None:
        """Store what was used since the last time, at most once a minute for each key."""
        due = {
            key_id: at
            for key_id, at in self._used.items()
            if key_id not in self._written or (at - self._written[key_id]).total_seconds() >= _USE_EVERY
        }
        for key_id, at in due.items():
            await self._database.execute(
                "INSERT INTO key_use (key_id, last_used_at) VALUES (%s, %s) ON CONFLICT (key_id) "
                "DO UPDATE SET last_used_at = greatest(key_use.last_used_at, excluded.last_used_at)",
                (key_id, at),
            )
        self._written.update(due)


def _key(stored: dict[str, str]) -> ApiKey:
    expires = stored.get("expires_at")
    return ApiKey(
        stored["key_id"],
        stored["key_hash"],
        datetime.fromisoformat(stored["created_at"]),
        datetime.fromisoformat(expires) if expires else None,
    )
