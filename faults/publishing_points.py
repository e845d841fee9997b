"""Publishing points that fail on request: a separate process that accepts HLS by PUT and POST, and records what arrived.

`python -m faults.publishing_points` prints three ports: those of the primary and of the secondary points, as if on two machines,
and one to control it. Times are those of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, Final, Self

import aiohttp
from aiohttp import web

from faults.processes import end_with_parent
from tests.support.waiting import ROOT

HOST: Final = "127.0.0.1"
POINTS: Final = 2
SESSION: Final = "X-Session"
UNNUMBERED: Final = -1
BROKEN: Final = 0
"""The status of a request that had no response."""
_PIECE: Final = 64 * 1024
_DRIP: Final = 2048
_DRIP_PAUSE: Final = 0.5
_BINDING: Final = 100
_WRITES: Final = ("PUT", "POST", "DELETE")
_MEDIA: Final = (".m4s", ".ts")


class How(StrEnum):
    """The behaviour of the points on one port.

    SLOW reads some KiB a second; HANGING neither reads nor responds; RESETTING breaks the connection within the body; FULL responds
    with an error after the body.
    """

    WELL = "well"
    DOWN = "down"
    SLOW = "slow"
    HANGING = "hanging"
    RESETTING = "resetting"
    UNAUTHORIZED = "401"
    FAILING = "500"
    FULL = "507"


@dataclass(frozen=True, slots=True)
class Write:
    """A request at a publishing point. `began` is the time when its head had arrived; `pieces` are the numbers of bytes of its body
    with their times."""

    channel: str
    point: int
    session: int
    name: str
    began: float
    pieces: Sequence[tuple[float, int]]
    status: int

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.pieces)

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def segment(self) -> bool:
        """True for a whole segment of media."""
        return self.taken and self.name.endswith(_MEDIA) and bool(self.pieces)

    @property
    def ended(self) -> float:
        return self.pieces[-1][0] if self.pieces else self.began


class PublishingPoints:
    """The process, as the harness sees it. The points of the ports in `fencing` refuse a session lower than the
    highest one so far."""

    def __init__(self, *, fencing: Sequence[int] = (1,)) -> None:
        self._fencing = fencing
        self._ports: Sequence[int] = ()

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "faults.publishing_points", *map(str, self._fencing)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=end_with_parent,
        )
        assert self._process.stdout is not None
        self._ports = json.loads(await self._process.stdout.readline())
        self._http = aiohttp.ClientSession(f"http://{HOST}:{self._ports[POINTS]}")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.close()
        self._process.kill()
        await self._process.wait()

    def url(self, channel: str, point: int) -> str:
        return f"http://{HOST}:{self._ports[point]}/{channel}"

    async def behave(self, point: int, how: How) -> None:
        async with self._http.put("/how", json={"point": point, "how": how}) as answer:
            answer.raise_for_status()

    async def writes(self) -> list[Write]:
        """Return all requests that have ended, and the partial data of those in progress."""
        async with self._http.get("/writes") as answer:
            return [_read(*line) for line in await answer.json()]


def _read(*columns: Any) -> Write:
    channel, point, session, name, began, pieces, status = columns
    return Write(channel, point, session, name, began, [(at, size) for at, size in pieces], status)


class _Record:
    """The record of one request."""

    def __init__(self, channel: str, point: int, *, session: int, name: str) -> None:
        self.channel, self.session = channel, session
        self._named = (channel, point, session, name, monotonic())
        self.pieces: list[tuple[float, int]] = []
        self.status = BROKEN

    def line(self) -> Sequence[Any]:
        return [*self._named, self.pieces, self.status]


class _Port:
    """The points on one port."""

    STATUSES: ClassVar[Mapping[How, int]] = {How.FAILING: 500, How.FULL: 507}

    def __init__(self, place: int, records: list[_Record], *, fences: bool) -> None:
        self.port = 0
        self._place = place
        self._records = records
        self._fences = fences
        self._highest: dict[str, int] = {}
        self._how = How.WELL
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{channel}/{name:.*}", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        for remaining in reversed(range(_BINDING)):
            try:
                await web.TCPSite(self._runner, HOST, self.port, reuse_address=True).start()
                break
            except OSError:
                if not remaining:
                    raise
                await asyncio.sleep(0.05)
        self.port = int(self._runner.addresses[0][1])

    async def behave(self, how: How) -> None:
        """Change the behaviour at once, also for requests in progress."""
        before, self._how = self._how, how
        self._changed.set()
        self._changed = asyncio.Event()
        if how is How.DOWN and self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        elif before is How.DOWN and self._runner is None:
            await self.open()

    async def _take(self, request: web.Request) -> web.StreamResponse:
        if request.method not in _WRITES:
            return web.Response(status=404)
        channel, session = request.match_info["channel"], _number(request.headers.get(SESSION, ""))
        record = _Record(channel, self._place, session=session, name=request.match_info["name"])
        self._records.append(record)
        if self._how is How.HANGING:
            await self._changed.wait()
            return _reset(request)
        if self._how is How.UNAUTHORIZED:
            record.status = 401
        elif self._fences and session < self._highest.get(channel, UNNUMBERED):
            record.status = 409
        else:
            self._highest[channel] = max(session, self._highest.get(channel, UNNUMBERED))
            if not await self._read_body(request, record):
                return _reset(request)
            record.status = self.STATUSES.get(self._how, 201)
        return web.Response(status=record.status)

    async def _read_body(self, request: web.Request, record: _Record) -> bool:
        """Return True if the whole body arrived and the connection stays open."""
        changed = self._changed
        with suppress(aiohttp.ClientError, ConnectionError, asyncio.CancelledError):
            while piece := await request.content.read(_DRIP if self._how is How.SLOW else _PIECE):
                record.pieces.append((monotonic(), len(piece)))
                if self._how is How.RESETTING or (self._fences and record.session < self._highest[record.channel]):
                    return False
                if self._how is How.SLOW:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_DRIP_PAUSE):
                            await changed.wait()
            return True
        return False


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else UNNUMBERED


def _reset(request: web.Request) -> web.Response:
    """End the connection without a response."""
    if request.transport is not None:
        connection = request.transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
    return web.Response()


async def _serve(fencing: Sequence[int]) -> None:
    records: list[_Record] = []
    ports = [_Port(place, records, fences=place in fencing) for place in range(POINTS)]
    for port in ports:
        await port.open()

    async def behave(request: web.Request) -> web.Response:
        wanted = await request.json()
        await ports[wanted["point"]].behave(How(wanted["how"]))
        return web.Response()

    async def writes(_: web.Request) -> web.Response:
        return web.json_response([record.line() for record in records])

    app = web.Application()
    app.router.add_put("/how", behave)
    app.router.add_get("/writes", writes)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    print(json.dumps([*(port.port for port in ports), runner.addresses[0][1]]), flush=True)  # noqa: T201 - the other side reads it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve([int(place) for place in sys.argv[1:]]))
