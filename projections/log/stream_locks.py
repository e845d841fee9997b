"""A lock for each stream, so that commands on one aggregate follow each other within a process."""

from __future__ import annotations

import asyncio


class _StreamLock:
    __slots__ = ("_lock", "_locks", "_stream", "_users")

    def __init__(self, locks: dict[str, _StreamLock], stream: str) -> None:
        self._locks = locks
        self._stream = stream
        self._lock = asyncio.Lock()
        self._users = 0

    async def __aenter__(self) -> None:
        self._users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            del self._locks[self._stream]


class StreamLocks:
    """A lock exists while somebody holds it or waits for it. Concurrency conflicts then come from other processes only."""

    def __init__(self) -> None:
        self._locks: dict[str, _StreamLock] = {}

    def of(self, stream: str) -> _StreamLock:
        lock = self._locks.get(stream)
        if lock is None:
            lock = self._locks[stream] = _StreamLock(self._locks, stream)
        return lock
