"""Somebody else's encoder, as a real HTTP server that follows the contract: its sessions send pieces to points in memory until they
are stopped, or their lease has run out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "the-encoders-own-key"
BEAT = 0.02
PIECE = 1_000


@dataclass
class Session:
    order: dict[str, Any] = field(repr=False)
    renewed: float
    state: str = "running"
    reason: str = ""
    points: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        return self.state == "running" and time.monotonic() < self.renewed + self.order["leaseSeconds"]


@dataclass
class Foreign:
    """An encoder with the HTTP interface for foreign encoders.

    `arrived` holds the sessions of the pieces that arrived at each point; `broken` are points that accept nothing. A `deaf` encoder
    answers nothing. It carries out requests with the methods in `dumb` without an answer. `response_text` replaces the status of a
    session.
    """

    url: str = ""
    sessions: dict[int, Session] = field(default_factory=dict)
    arrived: dict[int, list[int]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    deaf: bool = False
    dumb: set[str] = field(default_factory=set)
    response_text: str = ""
    odd: dict[str, Any] = field(default_factory=dict)
    """Members that replace those of its statuses, and of each point."""
    odd_point: dict[str, Any] = field(default_factory=dict)
    stops: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(f"{request.method} {request.path_qs}")
        if self.deaf:
            await asyncio.sleep(3_600)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"reason": f"not {request.headers.get('Authorization')}"}, status=401)
        number = request.match_info.get("session")
        if number is None:
            return web.json_response({"state": "ready"})
        reply = await self._of_session(request, int(number))
        if request.method in self.dumb:
            await asyncio.sleep(3_600)
        return reply

    async def _of_session(self, request: web.Request, number: int) -> web.Response:
        session = self.sessions.get(number)
        if request.method == "PUT":
            order = await request.json()
            if order["settings"].get("refuse"):
                return web.json_response({"reason": f"{order['settings']['refuse']} {KEY}"}, status=422)
            self.orders.append(order)
            self.sessions.setdefault(number, Session(order, time.monotonic()))
            return web.json_response({}, status=201)
        if session is None:
            return web.Response(status=404)
        if request.method == "DELETE":
            self.stops.append(await request.json())
            session.state = "ended"
            return web.Response(status=204)
        session.renewed = time.monotonic()
        return web.Response(text=self.response_text) if self.response_text else web.json_response(self._status(session))

    def _status(self, session: Session) -> dict[str, Any]:
        points = [{"index": index, **point} for index, point in session.points.items()]
        sent = sum(point["bytes"] for point in session.points.values())
        inputs = [{"id": "a", "name": "Original", "index": 0, "language": "en"}]
        statistics: dict[str, Any] = {"state": session.state, "reason": session.reason, "frames": sent // PIECE, "fps": 25.0}
        return {**statistics, "bytes": sent, "bitrate": 1e6, "points": points, "audioInputs": inputs, **self.odd}

    async def send(self) -> None:
        """Every beat a piece of each session to each of its points."""
        while True:
            for number, session in self.sessions.items():
                for point in session.order["points"] if session.live else ():
                    index = point["index"]
                    point = session.points.setdefault(index, {"bytes": 0, "connected": False, "reconnects": 0, "lastError": ""})
                    if index in self.broken:
                        point |= {"connected": False, "lastError": f"It is down, {KEY}."}
                        continue
                    point["reconnects"] += bool(point["lastError"]) and not point["connected"]
                    point |= {"connected": True, **self.odd_point, "bytes": point["bytes"] + PIECE}
                    self.arrived.setdefault(index, []).append(number)
            await asyncio.sleep(BEAT)


@asynccontextmanager
async def foreign_encoder() -> AsyncIterator[Foreign]:
    foreign = Foreign()
    app = web.Application()
    app.router.add_route("*", "/encoder", foreign.answer)
    app.router.add_route("*", "/encoder/sessions/{session}", foreign.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    foreign.url = f"http://{host}:{port}/encoder"
    sending = asyncio.create_task(foreign.send())
    try:
        yield foreign
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        await runner.cleanup()
