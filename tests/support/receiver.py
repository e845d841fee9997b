"""A server that takes an ingest by HTTP PUT and keeps all of it, and breaks as the test asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True)
class Taken:
    """A body as it was taken: `session` is what the request said."""

    path: str
    session: int
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(repr=False)


@dataclass
class Receiver:
    """`how`, by point, is how it answers: takes, 401, 503, `hang` (reads nothing, answers nothing), `slow` (reads 2 KiB/s) or `cut`
    (closes the connection)."""

    url: str = ""
    taken: list[Taken] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    how: dict[str, str] = field(default_factory=dict)
    live: dict[str, bytearray] = field(default_factory=dict)
    """Bodies of long requests, as far as they have come."""
    received: dict[int, int] = field(default_factory=dict)
    """All bytes of bodies that came, by session."""

    def point(self, name: str) -> str:
        return f"{self.url}/{name}"

    def media(self, name: str) -> list[Taken]:
        return [
            request for request in self.taken if request.path.startswith(f"/{name}/") and request.path.endswith((".m4s", ".ts"))
        ]

    def file(self, path: str) -> bytes:
        """The newest body of this path."""
        return next(request.body for request in reversed(self.taken) if request.path == path)

    def has(self, path: str) -> bool:
        return any(request.path == path for request in self.taken)

    async def take(self, request: web.Request) -> web.StreamResponse:
        how = self.how.get(request.path.split("/")[1], "")
        session = int(request.headers.get("X-Session", "-1"))
        if how == "hang":
            await asyncio.sleep(3_600)
        if how == "cut":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if how.isdigit():
            return web.Response(status=int(how))
        if request.method == "DELETE":
            self.deleted.append(request.path)
            return web.Response()
        body = self.live.setdefault(request.path, bytearray()) if request.method == "POST" else bytearray()
        while piece := await request.content.read(2_048 if how == "slow" else 65_536):
            body += piece
            self.received[session] = self.received.get(session, 0) + len(piece)
            if how == "slow":
                await asyncio.sleep(1)
        self.taken.append(Taken(request.path, session, bytes(body), dict(request.headers)))
        return web.Response(status=201)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
