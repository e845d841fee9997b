"""The encoder ffmpeg: encodes once, and sends to each publishing point on its own (ADR 0054)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from domain.configuration.encoder_settings import EncodeSettings, encode_settings
from domain.configuration.encoding import EncoderPlan
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from domain.media_event.values import AudioInput
from projections.kernel.background_task import start_task
from workers.adapters.encoders.encode_command import encode_command
from workers.adapters.encoders.playout import PATIENCE, Playout
from workers.adapters.encoders.point import Point, Sending
from workers.adapters.encoders.points import points_for, reachable
from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.encoders.sources import OpenSource, Sources
from workers.adapters.encoders.sync_watch import SyncWatch
from workers.adapters.encoders.tracks import Segment, Timeline, Track, TrackPlan, Tracks
from workers.adapters.encoders.upcoming import PlayoutPatience
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.step_account import program_confinement
from workers.adapters.system_account import AccountError
from workers.kernel.confinement import Confinement
from workers.kernel.media_programs import missing
from workers.media.cmaf import Fragment
from workers.media.errors import Unreadable
from workers.playout.programme import Programme
from workers.ports import NO_HEADERS, EncoderFailed, JudgedStatistics

Headers = Callable[[str, int], Mapping[str, str]]
"""Those of a request to this URL in this session, such as the token of the built-in origin."""

POLITE: Final = 3.0
"""Seconds in which an encode that is stopped writes what it still has; as long again the points get for it."""
FIRST_MEDIA: Final = 30.0
STALL: Final = 10.0
_MEASURED: Final = 10.0


def no_headers(url: str, session: int) -> Mapping[str, str]:
    return NO_HEADERS


@dataclass(frozen=True)
class FfmpegEncoder:
    """`program` is ffmpeg, None where there is none. `confinement`: what it gives up; may raise `AccountError`.
    `sources` opens what is encoded. `stall`: seconds without media after which an encode counts as ended."""

    program: Path | None
    client: GuardedClient
    sources: Sources
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
            return await RunningFfmpeg.started(
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
            raise EncoderFailed("The account of encoders cannot be used.") from None


class RunningFfmpeg:
    """One encode and its points."""

    def __init__(self, encoder: FfmpegEncoder, source: OpenSource, *, settings: EncodeSettings, points: Sequence[Point]) -> None:
        self._points = points
        self._sounds = source.input.sounds
        self._why: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._since = encoder.clock()
        self._stall = encoder.stall + 3 * settings.segment
        self._first_media = encoder.first_media
        self._moved = time.monotonic()
        self._progress = _Progress()
        self._rate: deque[tuple[float, int]] = deque()
        self._watches: dict[str, SyncWatch] = {}
        """Each key is the name of the sound that is compared with the first picture."""
        self._stopping = False
        self._playout = source.playout
        self._ends = self._playout is None and settings.source.type == "file" and not settings.source.loop
        self._over = False
        self._source_fault = ""
        self._notes = " ".join(settings.notes)
        self._tasks: list[asyncio.Task[None]] = []
        self._process: EncodeProcess | None = None
        self._tracks: Tracks | None = None

    @classmethod
    async def started(
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
        """Raises `OSError`."""
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
        timeline = Timeline(now=lambda: encoder.clock().timestamp(), segment=settings.segment, session=session)
        running._tracks = Tracks(plans, running, timeline=timeline)
        for output, reader in zip(outputs, running._tracks.readers, strict=True):
            output.feed = reader.feed
        running._process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement, feeds=source.feed is not None)
        running._watch(source)
        return running

    def _watch(self, source: OpenSource) -> None:
        assert self._process is not None
        self._tasks = [
            start_task(self._until_end(), what="end of an encoder"),
            start_task(self._until_stall(), what="stall of an encoder"),
        ]
        if (feed := source.take_feed()) is not None and self._process.input is not None:
            self._tasks.append(start_task(self._fed(feed(self._process.input)), what="source of an encoder"))
        if (playout := source.take_playout()) is not None:
            self._tasks.append(start_task(self._played(playout), what="playout of an encoder"))

    async def _fed(self, feeding: Awaitable[str]) -> None:
        self._source_fault = await feeding

    async def _played(self, playout: Playout) -> None:
        try:
            await playout.run()
        except Exception as fault:
            self._say(f"The playout broke off: {type(fault).__name__}.")
            raise

    async def ended(self) -> str:
        return await asyncio.shield(self._why)

    @property
    def over(self) -> bool:
        return self._over

    async def stop(self, *, final: bool = True) -> None:
        if self._stopping:
            await self._gone()
            return
        self._stopping = True
        self._say("")
        assert self._process is not None
        try:
            await self._process.terminate(seconds=POLITE)
            assert self._tracks is not None
            self._tracks.end()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLITE):
                    await asyncio.gather(*(point.finish(final=final) for point in self._points))
        finally:
            await self._gone()

    async def _gone(self) -> None:
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

    def take_fragment(self, track: Track, fragment: Fragment) -> None:
        now = self._moved = time.monotonic()
        self._rate.append((now, len(fragment.data)))
        while self._rate[0][0] < now - _MEASURED:
            self._rate.popleft()
        self._compare(track, fragment, now=now)
        for point in self._points:
            point.take_fragment(track, fragment)

    def _compare(self, track: Track, fragment: Fragment, *, now: float) -> None:
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
        self._say(f"What ffmpeg wrote cannot be read: {fault}.")

    def _say(self, why: str) -> None:
        if not self._why.done():
            self._why.set_result(why)

    def _bitrate(self) -> float:
        if len(self._rate) < 2:
            return 0.0
        seconds = max(self._rate[-1][0] - self._rate[0][0], 0.001)
        return sum(size for _, size in self._rate) * 8 / seconds

    async def _until_end(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        last = self._process.last_line
        if self._source_fault:
            self._say(f"The source broke off: {self._source_fault}")
        elif status == 0:
            self._over = self._ends and not self._why.done()
            self._say("The source is over.")
        elif status < 0:
            self._say(f"ffmpeg was ended by the signal {-status}.")
        else:
            self._say(f"ffmpeg ended with status {status}{': ' + last.rstrip('.') if last else ''}.")

    async def _until_stall(self) -> None:
        while not self._why.done():
            limit = self._stall if self._rate else self._first_media
            rest = self._moved + limit - time.monotonic()
            if rest <= 0:
                self._say(f"ffmpeg made no media for {limit:g} s.")
            await asyncio.sleep(max(rest, 0.05))


class _Output:
    """What comes from the pipe of one track."""

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
    """The reports of ffmpeg: lines of `key=value`."""

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
