"""A streaming server for tests, on loopback: the pages with the state of its publishing points."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from types import TracebackType

from domain.kernel.clock import iso

Page = Callable[[StreamWriter], Awaitable[None]]


def answers(body: str | bytes, *, status: int = 200, headers: str = "") -> Page:
    content = body.encode() if isinstance(body, str) else body

    async def page(out: StreamWriter) -> None:
        out.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(content)}\r\n{headers}\r\n".encode() + content)
        await out.drain()

    return page


async def hangs(_: StreamWriter) -> None:
    await asyncio.Event().wait()


async def drips(out: StreamWriter) -> None:
    """Send a byte now and then, without an end."""
    out.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        out.write(b"<")
        await out.drain()
        await asyncio.sleep(0.05)


def smil(state: str = "started", updated: datetime | str | None = None, body: str = "") -> str:
    reported = [("state", state), ("updated", iso(updated) if isinstance(updated, datetime) else updated)]
    metas = "".join(f'<meta name="{name}" content="{value}"></meta>' for name, value in reported if value)
    return (
        '<?xml version="1.0" encoding="utf-8"?><!-- made for a test -->'
        f'<smil xmlns="http://www.w3.org/2001/SMIL20/Language"><head>{metas}</head><body>{body}</body></smil>'
    )


class PointServer:
    """A server with `pages` by path; other paths are 404. `heads` are the requests."""

    def __init__(self, pages: dict[str, Page] | None = None) -> None:
        self.pages: dict[str, Page] = pages or {}
        self.heads: list[str] = []
        self._under_way: set[asyncio.Task[None] | None] = set()

    @property
    def asked(self) -> list[str]:
        """Return the requested paths, in order."""
        return [head.split(" ", 2)[1] for head in self.heads]

    async def __aenter__(self) -> PointServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._server.close()
        tasks = [task for task in self._under_way if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, incoming: StreamReader, out: StreamWriter) -> None:
        self._under_way.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await incoming.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                path = head.split(" ", 2)[1].partition("?")[0]
                await self.pages.get(path, answers("not here", status=404))(out)
        out.close()
