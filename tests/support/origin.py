"""An origin for tests: an HTTP server of files in memory that drops, stalls and redirects, and whose playlists move on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web

Body = bytes | Callable[[], bytes]


@dataclass
class Origin:
    """Serves `files` by path. A body that is a function is called for each request."""

    files: dict[str, Body] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    """Statuses that replace files, by path."""
    moved: dict[str, str] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    """The number of bytes after which the connection is closed, by path."""
    stalls: set[str] = field(default_factory=set)
    """Paths that send their first bytes and then nothing, until the origin is closed."""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def __aenter__(self) -> Origin:
        self._closed = asyncio.Event()
        app = web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._closed.set()
        await self._runner.cleanup()

    def times(self, path: str) -> int:
        """Return the number of requests for this path."""
        return self.asked.count(path)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path.lstrip("/")
        self.asked.append(path)
        if path in self.moved:
            return web.Response(status=302, headers={"Location": self.moved[path]})
        stored = self.files.get(path)
        if path in self.statuses or stored is None:
            return web.Response(status=self.statuses.get(path, 404), text="not here")
        body = stored() if callable(stored) else stored
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        answer = web.StreamResponse(headers=self.headers)
        if part is not None:
            answer.set_status(206)
            answer.headers["Content-Range"] = f"bytes {part[1]}-{part[2]}/{len(body)}"
            body = body[int(part[1]) : int(part[2]) + 1]
        answer.content_length = len(body)
        await answer.prepare(request)
        with suppress(ConnectionError):
            if path in self.stalls:
                await answer.write(body[:100])
                await self._closed.wait()
            await answer.write(body[: self.cut.get(path, len(body))])
            if path in self.cut and request.transport is not None:
                request.transport.close()
        return answer
