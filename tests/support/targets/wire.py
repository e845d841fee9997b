"""A link to a server that counts what is sent through it, and can be cut after some bytes or stop forwarding."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType


class Wire:
    """A TCP port that forwards to another one."""

    def __init__(self, port: int) -> None:
        self._there = port
        self._tasks: set[asyncio.Task[None]] = set()
        self._remaining: int | None = None
        self._open = asyncio.Event()
        self._open.set()
        self.sent = 0
        self.rate: float | None = None
        """Bytes a second towards the server; None: as fast as it goes."""
        self.port = 0

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_after(self, sent: int) -> None:
        """Close the connection, once, after this many further bytes."""
        self._remaining = sent

    def swallow(self) -> None:
        """Stop forwarding, without closing anything."""
        self._open.clear()

    def carry(self) -> None:
        """Forward again after `swallow`, beginning with what waited."""
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._there)
        ways = [asyncio.create_task(self._pass(reader, back, counts=True)), asyncio.create_task(self._pass(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (back, writer):
                end.transport.abort() if self._remaining == 0 else end.close()
            if self._remaining == 0:
                self._remaining = None

    async def _pass(self, source: asyncio.StreamReader, drain: asyncio.StreamWriter, *, counts: bool = False) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(65_536):
                await self._open.wait()
                if counts and self._remaining is not None:
                    chunk = chunk[: self._remaining]
                    self._remaining -= len(chunk)
                if counts:
                    self.sent += len(chunk)
                    await asyncio.sleep(len(chunk) / self.rate if self.rate else 0)
                drain.write(chunk)
                await drain.drain()
                if counts and self._remaining == 0:
                    return
