"""Pipes of raw pictures and sounds between processes. Exactly as much is read as was requested.

They do not use a transport, for the reason given in `process.py`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from projections.kernel.background_task import start_task

CAPACITY: Final = 1024 * 1024
"""The capacity of a pipe in bytes, if the system allows as much."""


def pipe() -> tuple[int, int]:
    """Return the ends of a new pipe for reading and for writing."""
    reading, writing = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, CAPACITY)
    return reading, writing


class RawReader:
    """A reader of a pipe. It reads only what was requested, so that the writer waits."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.over = False
        """True if the pipe is at its end."""
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        return len(self._buffer)

    def pull(self, size: int) -> bool:
        """Read what is available now. Return True if the buffer then contains this many bytes."""
        while len(self._buffer) < size and not self.over:
            try:
                piece = os.read(self.descriptor, min(CAPACITY, size - len(self._buffer)))
            except BlockingIOError:
                break
            self._buffer += piece
            self.over = not piece
        return len(self._buffer) >= size

    def take(self, size: int) -> bytes:
        """Remove this many bytes from the buffer and return them, fewer if it contains fewer."""
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor, self.over = -1, True


async def readable(readers: Collection[RawReader], *, seconds: float) -> None:
    """Wait until one of the readers can read more, at most this many seconds."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    watched = [each.descriptor for each in readers if not each.over]
    for descriptor in watched:
        loop.add_reader(descriptor, _settled(ready))
    try:
        await asyncio.wait({ready}, timeout=max(seconds, 0.0))
    finally:
        for descriptor in watched:
            loop.remove_reader(descriptor)


class RawWriter:
    """Writes pieces in order to a pipe, which it closes. At most `most` pieces wait."""

    def __init__(self, descriptor: int, *, most: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._most = most
        self._waiting: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._over = False
        self._task = start_task(self._write(), what="pipe to an encoder")

    async def put(self, piece: bytes) -> None:
        """Append a piece; wait if too many are waiting. Raises `BrokenPipeError` if the reader has closed the pipe."""
        while len(self._waiting) >= self._most and not self._over:
            self._room.clear()
            await self._room.wait()
        if self._over:
            raise BrokenPipeError
        self._waiting.append(piece)
        self._more.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _write(self) -> None:
        try:
            while True:
                while not self._waiting:
                    self._more.clear()
                    await self._more.wait()
                await self._all(memoryview(self._waiting[0]))
                self._waiting.popleft()
                self._room.set()
        except BrokenPipeError:
            return
        finally:
            self._over = True
            self._room.set()
            os.close(self._descriptor)

    async def _all(self, remaining: memoryview) -> None:
        while remaining:
            try:
                remaining = remaining[os.write(self._descriptor, remaining[:CAPACITY]) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_writer(self._descriptor, _settled(ready))
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


def _settled(future: asyncio.Future[None]) -> Callable[[], None]:
    def settle() -> None:
        if not future.done():
            future.set_result(None)

    return settle
