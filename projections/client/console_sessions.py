"""Sessions of the console: logins by an API key, each identified by a random token of which only the hash is stored.

A process's knowledge of a session is at most `FRESH` seconds old. The key of a session is looked up in the directory at every
request, so the session ends when its key is revoked or expires, when its client is deleted, and when its roles change.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Self

from cachetools import LRUCache

from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from projections.client.directory import FRESH, ClientDirectory, ClientKey, ClientRow
from projections.kernel.database.database import Database

MOST_OF_A_KEY: Final = 100
"""The number of sessions that one key may have. A further login ends the session that was unused for the longest time."""
_CACHED: Final = 10_000
_SEEN_EVERY: Final = timedelta(minutes=1)
_END_OLD: Final = """
DELETE FROM console_sessions WHERE ends_at <= %(now)s OR seen_at <= %(idle)s OR token_hash IN (
    SELECT token_hash FROM console_sessions WHERE key_id = %(key)s ORDER BY seen_at DESC, token_hash OFFSET %(most)s)
"""
_BEGIN: Final = "INSERT INTO console_sessions (token_hash, key_id, roles, seen_at, ends_at) VALUES (%s, %s, %s, %s, %s)"
_FIND: Final = "SELECT token_hash, key_id, roles, seen_at, ends_at FROM console_sessions WHERE token_hash = ANY(%s)"
_SEEN: Final = "UPDATE console_sessions SET seen_at = greatest(seen_at, %s) WHERE token_hash = ANY(%s)"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The longest duration of a session, in all and without a request."""

    longest: timedelta = timedelta(hours=12)
    idle: timedelta = timedelta(hours=1)

    @classmethod
    def of(cls, *, hours: int, idle_minutes: int) -> Self:
        return cls(timedelta(hours=hours), timedelta(minutes=idle_minutes))


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A session that has not ended. `ends_at` is the latest end."""

    client: ClientRow
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class _Stored:
    key_id: str
    roles: frozenset[str]
    seen_at: datetime
    ends_at: datetime


class ConsoleSessions:
    """Begins, finds and ends sessions."""

    def __init__(
        self, database: Database, directory: ClientDirectory, *, clock: Clock, limits: SessionLimits | None = None
    ) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock
        self._limits = limits or SessionLimits()
        self._cache: LRUCache[bytes, tuple[float, _Stored | None]] = LRUCache(_CACHED)
        """The time of reading, and the session; None for a token without a session."""
        self._wanted: set[bytes] = set()
        self._reading = asyncio.Lock()

    async def begin(self, key: str, *, admit: Callable[[str], None] = lambda key_id: None) -> tuple[str, ConsoleSession] | None:
        """Return a new token and its session; None if the key is unknown or has expired. `admit` may refuse by raising."""
        client_key = await self._directory.find_key(key)
        if client_key is None:
            return None
        admit(client_key.key.key_id)
        token, now = secrets.token_urlsafe(32), self._clock()
        stored = _Stored(client_key.key.key_id, frozenset(client_key.client.roles), now, now + self._limits.longest)
        old = {"now": now, "idle": now - self._limits.idle, "key": stored.key_id, "most": MOST_OF_A_KEY - 1}
        values = (_hash(token), stored.key_id, sorted(stored.roles), stored.seen_at, stored.ends_at)
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(_END_OLD, old)
            await connection.execute(_BEGIN, values)
        return token, _session(stored, client_key)

    async def find(self, token: str) -> ConsoleSession | None:
        """Return the session of a token; None if there is none or it has ended."""
        stored = await self._find_stored(_hash(token))
        if stored is None or not self._lasts(stored):
            return None
        client_key = await self._directory.key_by_id(stored.key_id)
        if client_key is None or frozenset(client_key.client.roles) != stored.roles:
            return None
        return _session(stored, client_key)

    async def end(self, token: str) -> None:
        """End a session, in this process at once and in others within `FRESH` seconds."""
        mark = _hash(token)
        async with self._reading:
            await self._database.execute("DELETE FROM console_sessions WHERE token_hash = %s", (mark,))
            self._cache[mark] = (float("inf"), None)

    def _lasts(self, stored: _Stored) -> bool:
        now = self._clock()
        return now < stored.ends_at and now - stored.seen_at < self._limits.idle

    async def _find_stored(self, mark: bytes) -> _Stored | None:
        """Return the stored session of a token. Tokens that arrive while a query is in progress share the next one, so wrong tokens
        cannot overload the database."""
        if not self._is_fresh(mark):
            self._wanted.add(mark)
            async with self._reading:
                if not self._is_fresh(mark):
                    marks, self._wanted = {*self._wanted, mark}, set()
                    await self._read(marks)
        return self._cache.get(mark, (0.0, None))[1]

    def _is_fresh(self, mark: bytes) -> bool:
        """Return True if the cached session is recent. It is not if its last use must be stored."""
        read_at, stored = self._cache.get(mark, (float("-inf"), None))
        if stored is not None and self._clock() - stored.seen_at >= _SEEN_EVERY:
            return False
        return time.monotonic() - read_at <= FRESH

    async def _read(self, marks: Collection[bytes]) -> None:
        started, now = time.monotonic(), self._clock()
        rows = await self._database.rows(_FIND, (list(marks),))
        sessions = {bytes(mark): _Stored(key, frozenset(roles), seen, ends) for mark, key, roles, seen, ends in rows}
        due = [mark for mark, stored in sessions.items() if now - stored.seen_at >= _SEEN_EVERY and self._lasts(stored)]
        if due:
            with suppress(Unavailable):  # reads continue while writes are impossible
                await self._database.execute(_SEEN, (now, due))
                sessions.update((mark, replace(sessions[mark], seen_at=now)) for mark in due)
        for mark in marks:
            self._cache[mark] = (started, sessions.get(mark))


def _session(stored: _Stored, client_key: ClientKey) -> ConsoleSession:
    expires = client_key.key.expires_at
    return ConsoleSession(client_key.client, stored.ends_at if expires is None else min(expires, stored.ends_at))


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()
