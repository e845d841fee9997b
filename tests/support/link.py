"""A link to a server that can swallow what passes: no packet arrives any more, and nothing is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_SOCKET = ".s.PGSQL.5432"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """A TCP port that forwards to a server."""

    def __init__(self, target: Callable[[], Awaitable[Streams]]) -> None:
        self._target = target
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()
        self.port = 0

    @classmethod
    def to_postgres(cls, conninfo: str) -> Self:
        """Return a link to a server that listens on a unix socket."""
        path = Path(str(conninfo_to_dict(conninfo)["host"])) / _SOCKET
        return cls(lambda: asyncio.open_unix_connection(path))

    @classmethod
    def to_port(cls, port: Callable[[], int]) -> Self:
        """`port` is asked at each connection."""
        return cls(lambda: asyncio.open_connection("127.0.0.1", port()))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    def refuse(self) -> None:
        """No new connection is taken; those that are open go on."""
        if self._server is not None:
            self._server.close()

    def through(self, conninfo: str) -> str:
        """The address of the database by this link."""
        return make_conninfo(conninfo, host="127.0.0.1", port=self.port)

    def swallow(self) -> None:
        """Nothing passes any more, not even the beginning or the end of a connection."""
        self._passing.clear()

    def restore(self) -> None:
        """Everything passes again. What was swallowed arrives after all, late."""
        self._passing.set()

    def replace(self) -> None:
        """New connections pass. Those that were swallowed never carry anything again."""
        self._passing = asyncio.Event()
        self._passing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.create_task(self._carry(reader, writer, self._passing))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event) -> None:
        try:
            await passing.wait()
            there, back = await self._target()
        except OSError:
            writer.close()
            return
        ways = [asyncio.create_task(_pass(*way, passing)) for way in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (back, writer):
                end.close()


async def _pass(source: asyncio.StreamReader, drain: asyncio.StreamWriter, passing: asyncio.Event) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(65_536):
            await passing.wait()
            drain.write(chunk)
            await drain.drain()
        await passing.wait()
