"""Locks on streams, so that the commands of a process on one aggregate run one after the other."""

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
    """The locks of a process. A lock exists while a command holds it or waits for it. Only other processes can then cause
    concurrency conflicts."""

    def __init__(self) -> None:
        self._locks: dict[str, _StreamLock] = {}

    def of(self, stream: str) -> _StreamLock:
        lock = self._locks.get(stream)
        if lock is None:
            lock = self._locks[stream] = _StreamLock(self._locks, stream)
        return lock
