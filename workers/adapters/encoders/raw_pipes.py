"""Pipes of raw pictures and sounds between processes, as much of each as is asked for.

Not by a transport, for the reason that `process.py` names."""

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
"""Bytes of a pipe, where the system allows so many."""


def pipe() -> tuple[int, int]:
    """The ends to read and to write."""
    reading, writing = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, CAPACITY)
    return reading, writing


class RawReader:
    """What came through a pipe and was not taken. Nothing is read until it is asked for, so that who writes waits."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.over = False
        """Whether nothing more comes."""
        self._kept = bytearray()

    @property
    def size(self) -> int:
        return len(self._kept)

    def pull(self, size: int) -> bool:
        """Whether so much is there now."""
        while len(self._kept) < size and not self.over:
            try:
                piece = os.read(self.descriptor, min(CAPACITY, size - len(self._kept)))
            except BlockingIOError:
                break
            self._kept += piece
            self.over = not piece
        return len(self._kept) >= size

    def take(self, size: int) -> bytes:
        """Less where there is no more."""
        taken = bytes(memoryview(self._kept)[:size])
        del self._kept[:size]
        return taken

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor, self.over = -1, True


async def readable(readers: Collection[RawReader], *, seconds: float) -> None:
    """Until more can be read from one of them, or so many seconds are over."""
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
    """Writes what it is given, in order, to a pipe that it closes. At most `most` pieces wait."""

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
        """Raises `BrokenPipeError` where nobody reads any more."""
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

    async def _all(self, left: memoryview) -> None:
        while left:
            try:
                left = left[os.write(self._descriptor, left[:CAPACITY]) :]
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
