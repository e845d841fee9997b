"""The encoder of somebody else, controlled over HTTP: docs/reference/api/encoders.md.

It has a lease: where nobody asks for its status any more, it stops by itself. So a worker that is dead or frozen needs no one to
stop its encoders."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, StrictBool, StrictInt, StrictStr

from domain.configuration.encoder_settings import http_settings
from domain.configuration.encoding import EncoderPlan
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, readable
from domain.media_event.values import AudioInput
from projections.kernel.background_task import start_task
from workers.adapters.encoders.point import SESSION, shown
from workers.adapters.encoders.said import Secrets, secrets_of_point, secrets_of_settings
from workers.playout.programme import Programme
from workers.ports import EncoderFailed, EncoderStatistics, Outbound, OutboundFailed, OutboundRefused, PointStatistics, Reply

LEASE: Final = 10.0
"""Seconds without a request after which the encoder stops by itself."""
POLL: Final = 1.0
RENEW: Final = 60.0
"""Seconds between two orders with tokens, and two looks whether it is still permitted. A token lasts for ten times as long."""
SECONDS: Final = 5.0
"""For each request."""
_MOST: Final = 262_144

Headers = Callable[[str, int], Mapping[str, str]]
Permitted = Callable[[str], Awaitable[bool]]
"""Whether those who have pointed a channel to the encoder, and sent an Event there, may still do so."""
NOT_PERMITTED: Final = "Whoever has ordered it may not do so any more: its client has no key or role for it."
_MOST_INPUTS: Final = 16
_Count = Annotated[StrictInt, Field(ge=0, lt=2**53)]
"""What every reader of JSON reads exactly."""
_PicturesPerSecond = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False, strict=True)]
_BitsPerSecond = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False, strict=True)]


class PointStatus(Section):
    index: _Count | None = None
    bytes: _Count | None = None
    connected: StrictBool | None = None
    reconnects: _Count | None = None
    dropped: _Count | None = None
    last_error: StrictStr | None = None


class AudioInputStatus(Section):
    id: StrictStr | None = None
    name: StrictStr | None = None
    index: _Count | None = None
    language: StrictStr | None = None


class Status(Section):
    state: StrictStr | None = None
    reason: StrictStr | None = None
    bytes: _Count | None = None
    frames: _Count | None = None
    fps: _PicturesPerSecond | None = None
    bitrate: _BitsPerSecond | None = None
    points: tuple[PointStatus, ...] | None = None
    audio_inputs: tuple[AudioInputStatus, ...] | None = None


async def everybody(channel: str) -> bool:
    return True


@dataclass(frozen=True)
class HttpEncoder:
    """`headers`: those that the encoder sends to a publishing point, such as the token of the built-in origin, which are told again
    every `renew` seconds. `permitted` says whether those who have ordered it may still do so."""

    outbound: Outbound
    clock: Clock
    headers: Headers
    permitted: Permitted = everybody
    lease: float = LEASE
    renew: float = RENEW
    poll: float = POLL
    seconds: float = SECONDS

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> RunningHttp:
        if programme is not None:
            raise EncoderFailed("An encoder of the type http plays no compositions.")
        if not plan.points:
            raise EncoderFailed("It has no publishing point that is known.")
        if not await self.permitted(channel):
            raise EncoderFailed(NOT_PERMITTED)
        order = _Order(self, plan, channel=channel, session=session)
        remote, body = order.made()
        if not may_send():
            raise EncoderFailed("This worker may not start it any more.")
        running = partial(RunningHttp, self, plan, order=order, remote=remote, session=session, may_send=may_send)
        try:
            await remote.begun(session, body)
        except asyncio.CancelledError:  # it may have begun
            await running().stop(final=False)
            raise
        return running()

    async def check(self, plan: EncoderPlan) -> str | None:
        try:
            await self.remote(plan).asked("GET")
        except EncoderFailed as fault:
            return str(fault)
        return None

    def remote(self, plan: EncoderPlan, *, headers: Sequence[Mapping[str, str]] = ()) -> _Remote:
        """`headers` are those that it is told for its points."""
        try:
            settings = http_settings(plan)
        except Malformed as refusal:
            raise EncoderFailed(f"{refusal}.") from None
        if not settings.url:
            raise EncoderFailed("encoderSpecific.url: is required.")
        points = [secrets_of_point(point.url, {}) for point in plan.points]
        values = [secrets_of_point("", each) for each in headers]
        key = settings.api_key or ""
        secrets = Secrets([key, *secrets_of_settings(plan.specific), *chain.from_iterable((*points, *values))])
        return _Remote(self.outbound, settings.url, key=key, secrets=secrets, seconds=self.seconds)


class _Order:
    """What the encoder is told: made anew before the tokens in it end."""

    def __init__(self, encoder: HttpEncoder, plan: EncoderPlan, *, channel: str, session: int) -> None:
        self.channel = channel
        self._encoder = encoder
        self._plan = plan
        self._session = session
        self._told: list[Mapping[str, str]] = []

    @property
    def has_tokens(self) -> bool:
        return any(self._told)

    def made(self) -> tuple[_Remote, Mapping[str, object]]:
        """Who is to be told, who repeats no token of the last two orders, and what."""
        told = [{} if point.provisioned else self._encoder.headers(point.url, self._session) for point in self._plan.points]
        self._told = [*self._told[-len(told) :], *told]
        points = [
            {"index": point.index, "url": point.url, "headers": {**headers, SESSION: str(self._session)}}
            for point, headers in zip(self._plan.points, told, strict=True)
        ]
        body = {"session": self._session, "channel": self.channel, "leaseSeconds": self._encoder.lease, "points": points}
        return self._encoder.remote(self._plan, headers=self._told), {**body, **_wishes(self._plan)}


class RunningHttp:
    """A session of it. Its status is asked for as long as this worker may send."""

    def __init__(
        self,
        encoder: HttpEncoder,
        plan: EncoderPlan,
        *,
        order: _Order,
        remote: _Remote,
        session: int,
        may_send: Callable[[], bool],
    ) -> None:
        self._encoder = encoder
        self._plan = plan
        self._order = order
        self._remote = remote
        self._session = session
        self._may_send = may_send
        self._since = encoder.clock()
        self._renewed = self._reached = self._ordered = time.monotonic()
        """When it has answered last, when a request may have reached it last, and when it was given its tokens."""
        self._status = readable(Status, {})
        self._fault = ""
        self._stopped = False
        self._why: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._task = start_task(self._watch(), what="status of an encoder")

    async def ended(self) -> str:
        return await asyncio.shield(self._why)

    @property
    def over(self) -> bool:
        """What its source is, nobody knows here."""
        return False

    async def stop(self, *, final: bool = True) -> None:
        """Without its answer, its lease is waited for."""
        self._say("")
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._stopped:
            return
        for force in (False, True):
            with suppress(EncoderFailed):
                await self._remote.asked("DELETE", self._session, body={"force": force, "final": final}, gone=True)
                self._stopped = True
                return
        await asyncio.sleep(max(0.0, self._reached + self._encoder.lease - time.monotonic()))
        self._stopped = True

    def statistics(self) -> EncoderStatistics:
        found = self._status
        return EncoderStatistics(
            self._since,
            bytes=found.bytes or 0,
            frames=found.frames or 0,
            fps=found.fps or 0.0,
            bitrate=found.bitrate or 0.0,
            last_error=self._fault,
            points=tuple(self._points()),
        )

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        if self._status.audio_inputs is None:
            return None
        found = []
        for place, one in enumerate(self._status.audio_inputs[:_MOST_INPUTS]):
            index = place if one.index is None else one.index
            texts = {"id": one.id or str(index), "name": one.name or "", "language": one.language or ""}
            found.append(AudioInput(index=index, **{key: self._remote.plain(text)[:80] for key, text in texts.items()}))
        return found

    def _points(self) -> Sequence[PointStatistics]:
        told = {one.index: one for one in self._status.points or ()}
        found = []
        for plan in self._plan.points:
            one = told.get(plan.index) or readable(PointStatus, {})
            said = self._remote.plain(one.last_error or "")
            counts = (one.bytes or 0, one.connected or False, one.reconnects or 0, one.dropped or 0)
            found.append(PointStatistics(plan.encoder, plan.index, shown(plan.url), *counts, said))
        return found

    async def _watch(self) -> None:
        while not self._why.done():
            await asyncio.sleep(self._encoder.poll)
            if not self._may_send():
                continue
            asked = time.monotonic()
            try:
                if not await self._still_permitted(asked):
                    return
                reply = await self._asked()
            except EncoderFailed as fault:
                self._fault = str(fault)
                if time.monotonic() - self._renewed >= self._encoder.lease:
                    self._say(f"Its status was not told for {self._encoder.lease:g} s: {self._fault}")
                continue
            self._renewed, self._fault = asked, ""
            self._status = readable(Status, reply)
            if self._status.state not in ("starting", "running"):
                reason = self._remote.plain(self._status.reason or "").rstrip(".")
                self._say(f"The encoder has ended{': ' + reason if reason else ''}.")

    async def _still_permitted(self, now: float) -> bool:
        """Give it the next tokens in time, as long as those may start it who have ordered it."""
        if now - self._ordered < self._encoder.renew:
            return True
        if not await self._encoder.permitted(self._order.channel):
            self._say(NOT_PERMITTED)
            return False
        self._ordered = now
        if self._order.has_tokens:
            self._remote, body = self._order.made()
            with suppress(EncoderFailed):  # it is told the next ones in time, or says why it has ended
                await self._remote.asked("PUT", self._session, body=body)
        return True

    async def _asked(self) -> object:
        """Its status. Whoever cancels this does not know either whether the request has reached it."""
        reached = True
        try:
            return await self._remote.asked("GET", self._session)
        except _NoAnswer as fault:
            reached = fault.sent
            raise
        finally:
            if reached:
                self._reached = time.monotonic()

    def _say(self, why: str) -> None:
        if not self._why.done():
            self._why.set_result(why)


class _NoAnswer(EncoderFailed):
    """`sent`: it may have got the request all the same."""

    def __init__(self, sentence: str, *, sent: bool) -> None:
        super().__init__(sentence)
        self.sent = sent


class _Remote:
    """The encoder's address and key, and the secrets that it is told."""

    def __init__(self, outbound: Outbound, url: str, *, key: str, secrets: Secrets, seconds: float) -> None:
        self.plain = secrets.plain
        self._seconds = seconds
        self._outbound = outbound
        self._url = url
        self._key = key

    async def asked(
        self, method: str, session: int | None = None, *, body: Mapping[str, object] | None = None, gone: bool = False
    ) -> object:
        """What it answers, as JSON where it is. Raises `EncoderFailed`. `gone`: that there is no such session is fine."""
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        if session is not None:
            headers[SESSION] = str(session)
        data = b"" if body is None else json.dumps(body).encode()
        if data:
            headers["Content-Type"] = "application/json"
        try:
            reply = await self._outbound.request(
                method, self._address(session), headers=headers, body=data, seconds=self._seconds, most=_MOST
            )
        except (OutboundRefused, OutboundFailed) as fault:
            sent = isinstance(fault, OutboundFailed) and not fault.unsent
            raise _NoAnswer(f"The encoder cannot be asked: {fault}", sent=sent) from None
        if not (200 <= reply.status < 300 or (gone and reply.status in (404, 410))):
            raise EncoderFailed(self._refusal(reply))
        with suppress(ValueError, RecursionError):
            return json.loads(reply.body or b"null")
        return None

    async def begun(self, session: int, order: Mapping[str, object]) -> None:
        try:
            await self.asked("PUT", session, body=order)
        except _NoAnswer as fault:
            if fault.sent:  # it may have begun
                with suppress(EncoderFailed):
                    await self.asked("DELETE", session, body={"force": True, "final": False}, gone=True)
            raise

    def _address(self, session: int | None) -> str:
        if session is None:
            return self._url
        try:
            parts = urlsplit(self._url)
        except ValueError:
            raise EncoderFailed("encoderSpecific.url: it cannot be read.") from None
        return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/sessions/{session}"))

    def _refusal(self, reply: Reply) -> str:
        said = ""
        with suppress(ValueError, RecursionError):
            found = json.loads(reply.body)
            said = found.get("reason", "") if isinstance(found, dict) else ""
        told = f": {self.plain(said).rstrip('.')}" if isinstance(said, str) and said else ""
        return f"The encoder answers with status {reply.status}{told}."


def _wishes(plan: EncoderPlan) -> dict[str, object]:
    """What it shall do, beside the points: all of `encoderSpecific` but its address and key, and the options of the Event."""
    kept = {key: value for key, value in plan.specific.items() if key.casefold() not in ("url", "apikey")}
    options = plan.options
    return {
        "encoder": plan.name,
        "settings": kept,
        "options": {
            "dvrLength": options.dvr_length,
            "minBitrate": options.min_bitrate,
            "maxBitrate": options.max_bitrate,
            "archive": options.archive,
            "segmentLength": options.segment_length,
            "encode": dict(options.encode),
        },
    }
