"""A file server that interrupts downloads, ignores ranges, sends wrong ranges, or changes its file between two requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web

CHANGED = "Wed, 01 Jan 2025 00:00:00 GMT"


@dataclass
class FileHost:
    """Serves `body` at every path. `breaks` are the numbers of bytes after which its next answers are interrupted."""

    body: bytes
    etag: str | None = '"one"'
    last_modified: str | None = None
    breaks: list[int] = field(default_factory=list)
    ranges: str = "honoured"
    """The treatment of ranges; the alternatives are: ignored, from another place, of another version, without a tag, for any
    version."""
    statuses: list[int] = field(default_factory=list)
    """The statuses of its next answers, which replace the file."""
    moved: dict[str, str] = field(default_factory=dict)
    """The redirections, by path."""
    says_length: bool = True
    pauses: asyncio.Event | None = None
    """When set, answers continue that have sent their first part."""
    before: Callable[[], None] = lambda: None
    """Called before each answer."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request, by lower-case name, with its path as `path`."""

    async def __aenter__(self) -> FileHost:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.before()
        self.asked.append({name.lower(): value for name, value in request.headers.items()} | {"path": request.path_qs})
        if request.path in self.moved:
            return web.Response(status=302, headers={"Location": self.moved[request.path]})
        if self.statuses:
            return web.Response(status=self.statuses.pop(0), text="not the file")
        answer, part = self._answer(request)
        return await self._sent(request, answer, part)

    def _answer(self, request: web.Request) -> tuple[web.StreamResponse, bytes]:
        headers = {"Content-Type": "video/mp4"}
        headers |= {"ETag": self.etag} if self.etag else {}
        headers |= {"Last-Modified": self.last_modified} if self.last_modified else {}
        match = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        same = self.ranges == "for any version" or request.headers.get("If-Range") in (None, self.etag, self.last_modified)
        if match is None or self.ranges == "ignored" or not same:
            return web.StreamResponse(headers=headers), self.body
        offset = int(match[1]) + (1 if self.ranges == "from another place" else 0)
        if offset >= len(self.body):
            return web.StreamResponse(status=416, headers={"Content-Range": f"bytes */{len(self.body)}"}), b""
        headers["Content-Range"] = f"bytes {offset}-{len(self.body) - 1}/{len(self.body)}"
        if self.ranges == "of another version":
            headers["ETag"] = '"another"'
        if self.ranges == "without a tag":
            del headers["ETag"]
        return web.StreamResponse(status=206, headers=headers), self.body[offset:]

    async def _sent(self, request: web.Request, answer: web.StreamResponse, part: bytes) -> web.StreamResponse:
        if self.says_length:
            answer.content_length = len(part)
        await answer.prepare(request)
        cut = self.breaks.pop(0) if self.breaks else len(part)
        with suppress(ConnectionError):
            if self.pauses is not None:
                await answer.write(part[:1000])
                await self.pauses.wait()
                return answer
            await answer.write(part[:cut])
            if cut < len(part) and request.transport is not None:
                request.transport.close()
        return answer
