"""An external encoder, controlled over HTTP: docs/reference/api/encoders.md.

The encoder has a lease: it stops automatically if its status is no longer requested. So the encoders of a dead or frozen worker end
without any action.
"""

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

from domain.channel.encoder_settings import http_settings
from domain.channel.encoding import EncoderPlan
from domain.event.values import AudioInput
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, readable
from projections.kernel.background_task import start_task
from workers.adapters.encoders.point import SESSION, shown
from workers.adapters.encoders.sanitizer import Secrets, secrets_of_point, secrets_of_settings
from workers.ports.encoders import EncoderFailed, EncoderStatistics, PointStatistics
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused, Reply
from workers.ports.playout import Programme

LEASE: Final = 10.0
"""Seconds without a request after which the encoder stops automatically."""
POLL: Final = 1.0
RENEW: Final = 60.0
"""Seconds between two orders with new tokens, and between two checks of the permission. A token is valid for ten times as long."""
SECONDS: Final = 5.0
"""The time limit for each request, in seconds."""
_MOST: Final = 262_144

Headers = Callable[[str, int], Mapping[str, str]]
Permitted = Callable[[str], Awaitable[bool]]
"""Returns True if the clients that assigned the encoder to this channel, and sent an Event there, still have the permission to do
so."""
NOT_PERMITTED: Final = "The client that ordered the encoder no longer has a key or a role that permits it."
_MOST_INPUTS: Final = 16
_Count = Annotated[StrictInt, Field(ge=0, lt=2**53)]
"""An integer that every JSON reader reads exactly."""
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


async def always_permitted(channel: str) -> bool:
    return True


@dataclass(frozen=True)
class HttpEncoder:
    """An encoder that another service runs. `headers` returns the headers that the encoder sends to a publishing point, such as the
    token of the built-in origin; it gets new ones every `renew` seconds. `permitted` returns True while the clients that ordered it
    are still permitted to."""

    outbound: Outbound
    clock: Clock
    headers: Headers
    permitted: Permitted = always_permitted
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
            raise EncoderFailed("The encoder has no known publishing point.")
        if not await self.permitted(channel):
            raise EncoderFailed(NOT_PERMITTED)
        order = _Order(self, plan, channel=channel, session=session)
        remote, body = order.prepare()
        if not may_send():
            raise EncoderFailed("This worker may no longer start the encoder.")
        running = partial(RunningHttp, self, plan, order=order, remote=remote, session=session, may_send=may_send)
        try:
            await remote.begin(session, body)
        except asyncio.CancelledError:  # it may have begun
            await running().stop(final=False)
            raise
        return running()

    async def check(self, plan: EncoderPlan) -> str | None:
        try:
            await self.remote(plan).ask("GET")
        except EncoderFailed as fault:
            return str(fault)
        return None

    def remote(self, plan: EncoderPlan, *, headers: Sequence[Mapping[str, str]] = ()) -> _Remote:
        """Return the connection to the encoder. `headers` are the headers for its points, whose secrets it must not repeat. Raises
        `EncoderFailed`."""
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
    """The order for the encoder. It is rebuilt before the tokens in it expire."""

    def __init__(self, encoder: HttpEncoder, plan: EncoderPlan, *, channel: str, session: int) -> None:
        self.channel = channel
        self._encoder = encoder
        self._plan = plan
        self._session = session
        self._sent_headers: list[Mapping[str, str]] = []

    @property
    def has_tokens(self) -> bool:
        return any(self._sent_headers)

    def prepare(self) -> tuple[_Remote, Mapping[str, object]]:
        """Return the encoder's connection, which removes the tokens of the last two orders from texts, and the order's body."""
        headers_of_points = [
            {} if point.provisioned else self._encoder.headers(point.url, self._session) for point in self._plan.points
        ]
        self._sent_headers = [*self._sent_headers[-len(headers_of_points) :], *headers_of_points]
        points = [
            {"index": point.index, "url": point.url, "headers": {**headers, SESSION: str(self._session)}}
            for point, headers in zip(self._plan.points, headers_of_points, strict=True)
        ]
        body = {"session": self._session, "channel": self.channel, "leaseSeconds": self._encoder.lease, "points": points}
        return self._encoder.remote(self._plan, headers=self._sent_headers), {**body, **_wishes(self._plan)}


class RunningHttp:
    """A session of an external encoder. Its status is requested as long as this worker may send."""

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
        """The times of the last answer, of the last request that may have reached the encoder, and of the last order with tokens.
        """
        self._status = readable(Status, {})
        self._fault = ""
        self._stopped = False
        self._end_reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._task = start_task(self._watch(), what="status of an encoder")

    async def ended(self) -> str:
        return await asyncio.shield(self._end_reason)

    @property
    def over(self) -> bool:
        """False: an external encoder does not report whether its source is over."""
        return False

    async def stop(self, *, final: bool = True) -> None:
        """Stop the session. If the encoder does not answer, wait until its lease is over."""
        self._report_end("")
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._stopped:
            return
        for force in (False, True):
            with suppress(EncoderFailed):
                await self._remote.ask("DELETE", self._session, body={"force": force, "final": final}, gone=True)
                self._stopped = True
                return
        await asyncio.sleep(max(0.0, self._reached + self._encoder.lease - time.monotonic()))
        self._stopped = True

    def statistics(self) -> EncoderStatistics:
        status = self._status
        return EncoderStatistics(
            self._since,
            bytes=status.bytes or 0,
            frames=status.frames or 0,
            fps=status.fps or 0.0,
            bitrate=status.bitrate or 0.0,
            last_error=self._fault,
            points=tuple(self._points()),
        )

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        if self._status.audio_inputs is None:
            return None
        inputs = []
        for place, audio_input in enumerate(self._status.audio_inputs[:_MOST_INPUTS]):
            index = place if audio_input.index is None else audio_input.index
            texts = {"id": audio_input.id or str(index), "name": audio_input.name or "", "language": audio_input.language or ""}
            inputs.append(AudioInput(index=index, **{key: self._remote.plain(text)[:80] for key, text in texts.items()}))
        return inputs

    def _points(self) -> Sequence[PointStatistics]:
        by_index = {point.index: point for point in self._status.points or ()}
        statistics = []
        for plan in self._plan.points:
            point = by_index.get(plan.index) or readable(PointStatus, {})
            last_error = self._remote.plain(point.last_error or "")
            counts = (point.bytes or 0, point.connected or False, point.reconnects or 0, point.dropped or 0)
            statistics.append(PointStatistics(plan.encoder, plan.index, shown(plan.url), *counts, last_error))
        return statistics

    async def _watch(self) -> None:
        while not self._end_reason.done():
            await asyncio.sleep(self._encoder.poll)
            if not self._may_send():
                continue
            requested = time.monotonic()
            try:
                if not await self._still_permitted(requested):
                    return
                reply = await self._request_status()
            except EncoderFailed as fault:
                self._fault = str(fault)
                if time.monotonic() - self._renewed >= self._encoder.lease:
                    self._report_end(f"The encoder did not report its status for {self._encoder.lease:g} s: {self._fault}")
                continue
            self._renewed, self._fault = requested, ""
            self._status = readable(Status, reply)
            if self._status.state not in ("starting", "running"):
                reason = self._remote.plain(self._status.reason or "").rstrip(".")
                self._report_end(f"The encoder has ended{': ' + reason if reason else ''}.")

    async def _still_permitted(self, now: float) -> bool:
        """Return True if the clients that ordered the encoder are still permitted to. Send it new tokens in time."""
        if now - self._ordered < self._encoder.renew:
            return True
        if not await self._encoder.permitted(self._order.channel):
            self._report_end(NOT_PERMITTED)
            return False
        self._ordered = now
        if self._order.has_tokens:
            self._remote, body = self._order.prepare()
            with suppress(EncoderFailed):  # the next order sends new ones in time, or the status says why the encoder has ended
                await self._remote.ask("PUT", self._session, body=body)
        return True

    async def _request_status(self) -> object:
        """Return the status. If this is cancelled, the request may have reached the encoder."""
        reached = True
        try:
            return await self._remote.ask("GET", self._session)
        except _NoAnswer as fault:
            reached = fault.sent
            raise
        finally:
            if reached:
                self._reached = time.monotonic()

    def _report_end(self, why: str) -> None:
        if not self._end_reason.done():
            self._end_reason.set_result(why)


class _NoAnswer(EncoderFailed):
    """Raised when the encoder did not answer. `sent` is True if it may have received the request anyway."""

    def __init__(self, sentence: str, *, sent: bool) -> None:
        super().__init__(sentence)
        self.sent = sent


class _Remote:
    """The address and the key of the encoder, and the secrets that it was given."""

    def __init__(self, outbound: Outbound, url: str, *, key: str, secrets: Secrets, seconds: float) -> None:
        self.plain = secrets.plain
        self._seconds = seconds
        self._outbound = outbound
        self._url = url
        self._key = key

    async def ask(
        self, method: str, session: int | None = None, *, body: Mapping[str, object] | None = None, gone: bool = False
    ) -> object:
        """Send a request and return the answer, None if it is not JSON. `gone` accepts an answer that there is no such session.
        Raises `EncoderFailed`."""
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
            raise _NoAnswer(f"The encoder cannot be reached: {fault}", sent=sent) from None
        if not (200 <= reply.status < 300 or (gone and reply.status in (404, 410))):
            raise EncoderFailed(self._refusal(reply))
        with suppress(ValueError, RecursionError):
            return json.loads(reply.body or b"null")
        return None

    async def begin(self, session: int, order: Mapping[str, object]) -> None:
        try:
            await self.ask("PUT", session, body=order)
        except _NoAnswer as fault:
            if fault.sent:  # it may have begun
                with suppress(EncoderFailed):
                    await self.ask("DELETE", session, body={"force": True, "final": False}, gone=True)
            raise

    def _address(self, session: int | None) -> str:
        if session is None:
            return self._url
        try:
            parts = urlsplit(self._url)
        except ValueError:
            raise EncoderFailed("encoderSpecific.url: cannot be parsed.") from None
        return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/sessions/{session}"))

    def _refusal(self, reply: Reply) -> str:
        reason = ""
        with suppress(ValueError, RecursionError):
            answer = json.loads(reply.body)
            reason = answer.get("reason", "") if isinstance(answer, dict) else ""
        suffix = f": {self.plain(reason).rstrip('.')}" if isinstance(reason, str) and reason else ""
        return f"The encoder answers with status {reply.status}{suffix}."


def _wishes(plan: EncoderPlan) -> dict[str, object]:
    """Return the rest of the order, besides the points: all of `encoderSpecific` except its address and key, and the options of the
    Event."""
    settings = {key: value for key, value in plan.specific.items() if key.casefold() not in ("url", "apikey")}
    options = plan.options
    return {
        "encoder": plan.name,
        "settings": settings,
        "options": {
            "dvrLength": options.dvr_length,
            "minBitrate": options.min_bitrate,
            "maxBitrate": options.max_bitrate,
            "archive": options.archive,
            "segmentLength": options.segment_length,
            "encode": dict(options.encode),
        },
    }
