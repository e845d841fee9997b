"""Clients that put Events on the air and take them off again, each on its own channel, until they are told to end."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from domain.kernel.clock import iso
from faults.asking import Answered, Asking
from faults.on_air_log import LIVE, STOPPED
from faults.on_air_verdict import AnsweredRequest
from faults.publishing_points import POINTS, PublishingPoints
from faults.stage import KEY

_HEADERS: Final = {"API-KEY": KEY}
_OPTIONS: Final = "-preset ultrafast -tune zerolatency"
_SOURCE: Final = {
    "source": {"type": "test"},
    "renditions": [{"width": 160, "height": 90, "bitrate": 64_000, "fps": 10}],
    "keyFrameInterval": 1,
    "audioBitrate": 16_000,
}
_AHEAD: Final = 4.0
_LOOK: Final = 0.5
_PATIENCE: Final = 180.0
_UNPUBLISHED, _PUBLISHED = LIVE


@dataclass(slots=True)
class AirTally(Answered):
    """The answers. `channels` maps each Event to the name of its channel, `names` the ids of channels to their names; `scheduled`
    holds the times of Events that only the schedule starts and stops."""

    requests: list[AnsweredRequest] = field(default_factory=list)
    channels: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    scheduled: dict[str, tuple[float, float]] = field(default_factory=dict)
    acts: dict[str, int] = field(default_factory=dict)


class AirLoad:
    """The clients. `stays` is the shortest and the longest time for which an Event stays on the air. On the first channel one stays
    there all the time."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        points: PublishingPoints,
        channels: int,
        stays: tuple[float, float],
        dice: random.Random,
    ) -> None:
        self.tally = AirTally()
        self._asking = Asking(addresses, tally=self.tally, dice=dice)
        self._points = points
        self._count = channels
        self._stays = stays
        self._dice = dice
        self._keys = iter(range(1_000_000))
        self._ids: dict[str, str] = {}
        self._over = asyncio.Event()
        self._authors: asyncio.Future[Any] | None = None
        self._remaining: list[tuple[str, Callable[[str], Awaitable[None]]]] = []
        self._deck: Sequence[tuple[str, Callable[[str], Awaitable[None]]]] = (
            ("start and stop", self._start_and_stop),
            ("schedule", self._schedule),
            ("start, stop, start", self._flicker),
            ("forced stop during the start", self._force),
            ("two Events", self._two),
            ("deletion on the air", self._delete),
        )

    async def prepare(self) -> None:
        for number in range(self._count):
            name = f"c{number}"
            body = {"name": name, "configurationJson": json.dumps({"encoders": [self._encoder(name)]})}
            self._ids[name] = str((await self._ask("POST", "/api/channel/", body, once=True))["id"])
            self.tally.names[self._ids[name]] = name

    def _encoder(self, channel: str) -> dict[str, Any]:
        places = {name: {"publishingPointUrl": self._points.url(channel, at)} for at, name in enumerate(_PLACES)}
        server = {"type": "own", "streamingServerSpecific": places}
        return {"name": channel, "type": "ffmpeg", "encoderSpecific": _SOURCE, "streamingServer": server}

    async def calm(self) -> None:
        """Start and stop once on each channel."""
        await asyncio.gather(*(self._act("calm", self._start_and_stop, channel) for channel in self._ids))

    def start(self) -> None:
        first, *others = self._ids
        self._authors = asyncio.gather(self._act("stay", self._stay, first), *(self._author(channel) for channel in others))

    @property
    def failed(self) -> bool:
        """True if the clients ended before they were told to."""
        return self._authors is not None and self._authors.done() and not self._over.is_set()

    async def finish(self) -> None:
        """Wait until every kind of act has occurred and everything was stopped."""
        self._over.set()
        assert self._authors is not None
        await self._authors

    async def close(self) -> None:
        if self._authors is not None:
            self._authors.cancel()
            await asyncio.gather(self._authors, return_exceptions=True)
        await self._asking.close()

    async def _author(self, channel: str) -> None:
        every = {name for name, _ in self._deck}
        while not (self._over.is_set() and every <= self.tally.acts.keys()):
            if not self._remaining:
                self._remaining = list(self._deck)
                self._dice.shuffle(self._remaining)
            await self._act(*self._remaining.pop(), channel)
            await asyncio.sleep(self._dice.choice((0.0, 0.5, 2.0)))

    async def _act(self, name: str, act: Callable[[str], Awaitable[None]], channel: str) -> None:
        await act(channel)
        self.tally.acts[name] = self.tally.acts.get(name, 0) + 1

    # --- acts

    async def _stay(self, channel: str) -> None:
        event = await self._event(channel)
        await self._put(event, _PUBLISHED)
        await self._over.wait()
        await self._put(event, STOPPED)

    async def _start_and_stop(self, channel: str) -> None:
        event = await self._event(channel)
        await self._put(event, self._dice.choice(LIVE))
        await self._on_air()
        await self._put(event, STOPPED)

    async def _schedule(self, channel: str) -> None:
        start = time.time() + _AHEAD
        end = start + self._dice.uniform(*self._stays)
        times = {"scheduledStart": _iso(start), "scheduledEnd": _iso(end)}
        event = await self._event(channel, **times, autoStart=True, autoEnd=True, autoPublish=self._dice.random() < 0.5)
        self.tally.scheduled[event] = (start, end)
        deadline = end + _PATIENCE
        while time.time() < deadline:
            await asyncio.sleep(max(_LOOK, end - time.time()))
            if (await self._ask("GET", f"/api/event/{event}"))["state"] == STOPPED:
                return

    async def _flicker(self, channel: str) -> None:
        """Start and stop an Event several times within a second, if the answers arrive in time."""
        event = await self._event(channel)
        for state in (_UNPUBLISHED, STOPPED, _PUBLISHED, STOPPED, _UNPUBLISHED):
            await self._put(event, state)
            await asyncio.sleep(self._dice.uniform(0, 0.3))
        await self._on_air()
        await self._put(event, STOPPED)

    async def _force(self, channel: str) -> None:
        event = await self._event(channel)
        await self._put(event, _UNPUBLISHED)
        await asyncio.sleep(self._dice.choice((0.0, 0.2, 1.0, 2.0)) * self._dice.random())
        await self._put(event, STOPPED, forced=True)
        await asyncio.sleep(self._dice.uniform(2, 8))

    async def _two(self, channel: str) -> None:
        """Start two Events on one channel. The one that is refused the channel gets it after the other one has left it."""
        first, second = await self._event(channel), await self._event(channel)
        await asyncio.gather(self._put(first, _UNPUBLISHED), self._put(second, _UNPUBLISHED))
        await self._on_air()
        await self._put(first, STOPPED)
        await self._on_air()
        await self._put(second, STOPPED)

    async def _delete(self, channel: str) -> None:
        event = await self._event(channel)
        await self._put(event, _PUBLISHED)
        await asyncio.sleep(self._dice.uniform(0, self._stays[0]))
        sent = time.time()
        await self._asking.answer("DELETE", f"/api/event/{event}", headers=_HEADERS, fine=(404,))
        self.tally.requests.append(AnsweredRequest(event, channel, None, sent, time.time()))

    async def _on_air(self) -> None:
        await asyncio.sleep(self._dice.uniform(*self._stays))

    # --- requests

    async def _event(self, channel: str, **more: Any) -> str:
        body = {"title": channel, "channelId": self._ids[channel], "additionalStreamingOptions": _OPTIONS, **more}
        event = str((await self._ask("POST", "/api/event/", body, once=True))["id"])
        self.tally.channels[event] = channel
        return event

    async def _put(self, event: str, state: int, *, forced: bool = False) -> None:
        sent = time.time()
        if forced:
            await self._ask("PUT", f"/api/event/forcestop/{event}")
        else:
            await self._ask("PUT", f"/api/event/state/{event}", {"state": state})
        self.tally.requests.append(AnsweredRequest(event, self.tally.channels[event], state, sent, time.time()))

    async def _ask(self, method: str, path: str, body: Any = None, *, once: bool = False) -> Any:
        """Send a request and return the JSON of its answer. With `once` it is executed once, however often it is sent."""
        headers = {**_HEADERS, "Idempotency-Key": f"on air {next(self._keys)}"} if once else _HEADERS
        return (await self._asking.answer(method, path, body, headers=headers))[1]


_PLACES: Final = ("primaryPublishingPoint", "secondaryPublishingPoint")
assert len(_PLACES) == POINTS


def _iso(at: float) -> str:
    return iso(datetime.fromtimestamp(at, UTC))
