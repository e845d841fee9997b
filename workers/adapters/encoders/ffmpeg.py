"""The encoder ffmpeg: encodes once, and sends to each publishing point separately (ADR 0054)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from domain.channel.encoder_settings import EncodeSettings, encode_settings
from domain.channel.encoding import EncoderPlan
from domain.event.values import AudioInput
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from projections.kernel.background_task import start_task
from workers.adapters.encoders.encode_command import encode_command
from workers.adapters.encoders.playout import PATIENCE, Playout
from workers.adapters.encoders.point import Point, Sending
from workers.adapters.encoders.points import points_for, reachable
from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.encoders.sources import EncoderSources, OpenSource
from workers.adapters.encoders.tracks import EncodeClock, EncodedTracks, Segment, Track, TrackPlan
from workers.adapters.encoders.upcoming_items import PlayoutPatience
from workers.adapters.step_account import program_confinement
from workers.adapters.system_account import AccountError
from workers.kernel.confinement import Confinement
from workers.kernel.media_programs import missing
from workers.media.cmaf import CmafFragment
from workers.media.errors import Unreadable
from workers.ports.encoders import EncoderFailed, JudgedStatistics
from workers.ports.outbound import NO_HEADERS, OutboundConnections
from workers.ports.playout import Programme

# Detection, without decoding, of sound that drifts away from its picture, by how much of each has come. An encoder delays frames
# of the picture, and fragments come in steps. So the watch measures how far, and for how long, the distance differs from that of
# the first seconds. A still picture, or a sound that is missing for a while, is no fault.

_SETTLED: Final = 10.0
"""Seconds after which the usual distance is known."""
_MOVING: Final = 5.0
"""Seconds within which a continuing track delivers something."""
_APART: Final = 1.0
_LONG: Final = 30.0


@dataclass(slots=True)
class SyncWatch:
    """Compares a sound with the picture. `fault` is a sentence once the sound has drifted for long, and then stays."""

    fault: str = ""
    _ends: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """The end of the picture (True) and of the sound (False): in the time of the media, and by the clock when it came."""
    _began: float = 0.0
    _usual: float | None = None
    _since: float | None = None

    def take(self, *, picture: bool, end: float, now: float) -> None:
        """Record that a fragment ends at `end` and came at `now`, both in seconds."""
        self._ends[picture] = (end, now)
        if self.fault or len(self._ends) < 2:
            return
        (sound, heard), (shown, seen) = self._ends[False], self._ends[True]
        ahead = sound - shown
        if self._usual is None:
            self._began, self._usual = now, ahead
        elif now - self._began < _SETTLED:
            self._usual = min(self._usual, ahead, key=abs)
        elif abs(ahead - self._usual) <= _APART or now - min(heard, seen) > _MOVING:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= _LONG:
            away = ahead - self._usual
            self.fault = f"The sound has run {abs(away):.1f} s {'ahead of' if away > 0 else 'behind'} the picture."


Headers = Callable[[str, int], Mapping[str, str]]
"""Returns the headers of a request to this URL in this session, such as the token of the built-in origin."""

STOP_SECONDS: Final = 3.0
"""Seconds that a stopped encode has to write its remaining output. The points then have as many to send it."""
FIRST_MEDIA: Final = 30.0
STALL: Final = 10.0
_MEASURED: Final = 10.0


def no_headers(url: str, session: int) -> Mapping[str, str]:
    return NO_HEADERS


@dataclass(frozen=True)
class FfmpegEncoder:
    """The encoder. `program` is ffmpeg, None if it is not installed. `confinement` returns the restrictions of its process, and may
    raise `AccountError`. `sources` opens what is encoded. `stall` is the number of seconds without media after which an encode
    counts as ended."""

    program: Path | None
    client: OutboundConnections
    sources: EncoderSources
    clock: Clock
    headers: Headers = no_headers
    confinement: Callable[[Path], Confinement] = program_confinement
    stall: float = STALL
    first_media: float = FIRST_MEDIA
    playout_patience: PlayoutPatience = PATIENCE

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> RunningFfmpeg:
        settings = _settings(plan)
        program, confinement = await self._program()
        sending = Sending(
            session,
            may_send,
            lambda url: self.headers(url, session),
            settings.segment,
            settings.window,
            settings.dvr_length,
            settings.delete_segments,
        )
        if programme is not None:
            source = self.sources.play(
                settings, programme, program=program, confinement=confinement, patience=self.playout_patience
            )
        else:
            source = await self.sources.open(settings, program=program, confinement=confinement)
        try:
            points = points_for(plan.points, sending, client=self.client)
            return await RunningFfmpeg.start_encode(
                self, source, program=program, settings=settings, points=points, confinement=confinement, session=session
            )
        except OSError as fault:
            raise EncoderFailed(f"ffmpeg cannot be started: {fault.strerror or type(fault).__name__}.") from None
        finally:
            await source.close()

    async def check(self, plan: EncoderPlan) -> str | None:
        try:
            settings = _settings(plan)
            program, confinement = await self._program()
            source = await self.sources.open(settings, program=program, confinement=confinement)
            await source.close()
        except EncoderFailed as refusal:
            return str(refusal)
        return await reachable(plan.points, client=self.client)

    async def _program(self) -> tuple[Path, Confinement]:
        if self.program is None:
            raise EncoderFailed(missing("ffmpeg"))
        try:
            return self.program, await asyncio.to_thread(self.confinement, self.program)
        except (AccountError, OSError):
            raise EncoderFailed("The system account of the encoders cannot be used.") from None


class RunningFfmpeg:
    """A running encode and its publishing points."""

    def __init__(self, encoder: FfmpegEncoder, source: OpenSource, *, settings: EncodeSettings, points: Sequence[Point]) -> None:
        self._points = points
        self._sounds = source.input.sounds
        self._end_reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._since = encoder.clock()
        self._stall = encoder.stall + 3 * settings.segment
        self._first_media = encoder.first_media
        self._moved = time.monotonic()
        self._progress = _Progress()
        self._rate: deque[tuple[float, int]] = deque()
        self._watches: dict[str, SyncWatch] = {}
        """The watches by the name of the sound that is compared with the first picture."""
        self._stopping = False
        self._playout = source.playout
        self._ends = self._playout is None and settings.source.type == "file" and not settings.source.loop
        self._over = False
        self._source_fault = ""
        self._notes = " ".join(settings.notes)
        self._tasks: list[asyncio.Task[None]] = []
        self._process: EncodeProcess | None = None
        self._tracks: EncodedTracks | None = None

    @classmethod
    async def start_encode(
        cls,
        encoder: FfmpegEncoder,
        source: OpenSource,
        *,
        program: Path,
        settings: EncodeSettings,
        points: Sequence[Point],
        confinement: Confinement,
        session: int,
    ) -> RunningFfmpeg:
        """Start the encode and return it. Raises `OSError`."""
        running = cls(encoder, source, settings=settings, points=points)
        plans: list[TrackPlan] = []
        outputs: list[_Output] = []
        pipes = Pipes()

        def pipe(plan: TrackPlan) -> str:
            plans.append(plan)
            outputs.append(_Output(running))
            return pipes.open(outputs[-1].take)

        progress = pipes.open(running._progress.take)
        command = encode_command(program, source.input, settings=settings, progress=progress, pipe=pipe)
        for descriptor in source.take_descriptors():
            pipes.hand(descriptor)
        timeline = EncodeClock(now=lambda: encoder.clock().timestamp(), segment=settings.segment, session=session)
        running._tracks = EncodedTracks(plans, running, timeline=timeline)
        for output, reader in zip(outputs, running._tracks.readers, strict=True):
            output.feed = reader.feed
        running._process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement, feeds=source.feed is not None)
        running._watch(source)
        return running

    def _watch(self, source: OpenSource) -> None:
        assert self._process is not None
        self._tasks = [
            start_task(self._watch_end(), what="end of an encoder"),
            start_task(self._watch_stall(), what="stall of an encoder"),
        ]
        if (feed := source.take_feed()) is not None and self._process.input is not None:
            self._tasks.append(start_task(self._feed_source(feed(self._process.input)), what="source of an encoder"))
        if (playout := source.take_playout()) is not None:
            self._tasks.append(start_task(self._run_playout(playout), what="playout of an encoder"))

    async def _feed_source(self, feeding: Awaitable[str]) -> None:
        self._source_fault = await feeding

    async def _run_playout(self, playout: Playout) -> None:
        try:
            await playout.run()
        except Exception as fault:
            self._report_end(f"The playout failed: {type(fault).__name__}.")
            raise

    async def ended(self) -> str:
        return await asyncio.shield(self._end_reason)

    @property
    def over(self) -> bool:
        return self._over

    async def stop(self, *, final: bool = True) -> None:
        if self._stopping:
            await self._clean_up()
            return
        self._stopping = True
        self._report_end("")
        assert self._process is not None
        try:
            await self._process.terminate(seconds=STOP_SECONDS)
            assert self._tracks is not None
            self._tracks.end()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await asyncio.gather(*(point.finish(final=final) for point in self._points))
        finally:
            await self._clean_up()

    async def _clean_up(self) -> None:
        assert self._process is not None
        await self._process.kill()
        await asyncio.gather(*(point.abort() for point in self._points))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._playout is not None:
            self._playout.close()

    def statistics(self) -> JudgedStatistics:
        points = tuple(point.record.statistics() for point in self._points)
        fault = next((watch.fault for watch in self._watches.values() if watch.fault), "")
        return JudgedStatistics(
            self._since,
            bytes=sum(point.bytes for point in points),
            frames=self._progress.frames,
            fps=self._progress.fps,
            bitrate=self._bitrate(),
            fault=fault,
            last_error=fault or (self._process.last_line if self._process is not None else "") or self._notes,
            points=points,
            playout=self._playout.statistics() if self._playout is not None else None,
        )

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        return self._sounds

    def begin(self, tracks: Sequence[Track]) -> None:
        for point in self._points:
            point.begin(tracks)

    def take_fragment(self, track: Track, fragment: CmafFragment) -> None:
        now = self._moved = time.monotonic()
        self._rate.append((now, len(fragment.data)))
        while self._rate[0][0] < now - _MEASURED:
            self._rate.popleft()
        self._compare(track, fragment, now=now)
        for point in self._points:
            point.take_fragment(track, fragment)

    def _compare(self, track: Track, fragment: CmafFragment, *, now: float) -> None:
        if track.plan.video and track.name != "v0":
            return
        end = (fragment.time + fragment.duration) / track.header.timescale
        watches = self._watches.values() if track.plan.video else [self._watches.setdefault(track.name, SyncWatch())]
        for watch in watches:
            watch.take(picture=track.plan.video, end=end, now=now)

    def take_segment(self, track: Track, segment: Segment) -> None:
        for point in self._points:
            point.take_segment(track, segment)

    def broken(self, fault: Unreadable) -> None:
        self._report_end(f"The output of ffmpeg cannot be read: {fault}.")

    def _report_end(self, why: str) -> None:
        if not self._end_reason.done():
            self._end_reason.set_result(why)

    def _bitrate(self) -> float:
        if len(self._rate) < 2:
            return 0.0
        seconds = max(self._rate[-1][0] - self._rate[0][0], 0.001)
        return sum(size for _, size in self._rate) * 8 / seconds

    async def _watch_end(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        last = self._process.last_line
        if self._source_fault:
            self._report_end(f"The source failed: {self._source_fault}")
        elif status == 0:
            self._over = self._ends and not self._end_reason.done()
            self._report_end("The source has ended.")
        elif status < 0:
            self._report_end(f"ffmpeg was ended by signal {-status}.")
        else:
            self._report_end(f"ffmpeg ended with status {status}{': ' + last.rstrip('.') if last else ''}.")

    async def _watch_stall(self) -> None:
        while not self._end_reason.done():
            limit = self._stall if self._rate else self._first_media
            rest = self._moved + limit - time.monotonic()
            if rest <= 0:
                self._report_end(f"ffmpeg produced no media for {limit:g} s.")
            await asyncio.sleep(max(rest, 0.05))


class _Output:
    """The receiver of the output of one track. Its pipe is read to the end after the output became unreadable."""

    def __init__(self, running: RunningFfmpeg) -> None:
        self._running = running
        self._broken = False
        self.feed: Callable[[bytes], None] = lambda _: None

    def take(self, piece: bytes) -> None:
        if self._broken:
            return
        try:
            self.feed(piece)
        except Unreadable as fault:
            self._broken = True
            self._running.broken(fault)


class _Progress:
    """The progress that ffmpeg reports, in lines of `key=value`."""

    def __init__(self) -> None:
        self._rest = b""
        self.frames = 0
        self.fps = 0.0

    def take(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:200]
        for line in lines:
            key, _, value = line.partition(b"=")
            with suppress(ValueError):
                if key == b"frame":
                    self.frames = int(value)
                elif key == b"fps":
                    self.fps = float(value)


def _settings(plan: EncoderPlan) -> EncodeSettings:
    try:
        return encode_settings(plan)
    except Malformed as refusal:
        raise EncoderFailed(f"{refusal}.") from None
