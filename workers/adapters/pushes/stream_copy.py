"""Copying of a stream into CMAF tracks by ffmpeg, which reads what is fetched for it and writes to pipes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from projections.kernel.background_task import start_task
from workers.adapters.encoders.fetched_stream import FetchedStream
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.hls_reading import NotRead
from workers.adapters.encoders.probe import probe_source
from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.encoders.tracks import Track, TrackPlan
from workers.adapters.pushes.track_feed import TrackFeed
from workers.adapters.system_account import AccountError
from workers.kernel.confinement import Confinement
from workers.media.boxes import BoxStream
from workers.media.cmaf import LARGEST, header
from workers.media.errors import Unreadable
from workers.media.track_headers import Headers
from workers.media.transport_stream import PACKET, begins_packets
from workers.ports.encoders import EncoderFailed
from workers.ports.outbound import OutboundConnections
from workers.ports.pushes import PushFailed

_BEGIN: Final = 20.0
"""Seconds within which the headers of all tracks must come."""
_MP4: Final = ("-f", "mp4", "-movflags", "+cmaf+delay_moov+frag_keyframe", "-frag_duration", "500000")
_MOST_WAITING: Final = 240
"""The limit of fragments of a track, two minutes of media, that wait for a target that accepts them more slowly than they are
shown."""
_MOST_BYTES: Final = 96 * 1024 * 1024
"""The limit of the waiting fragments of both tracks, in bytes."""
_AAC: Final = ("-bsf:a", "aac_adtstoasc")
Put = Callable[[QueuedFragment], Awaitable[None]]


@dataclass(frozen=True)
class Copying:
    """Starts copies. `program` is ffmpeg, None if it is not installed. `confinement` returns the restrictions of its process, and
    may raise `AccountError`."""

    program: Path | None
    confinement: Callable[[Path], Confinement]

    async def start(self, client: OutboundConnections, url: str, *, place: int, plans: tuple[TrackPlan, TrackPlan]) -> Copy:
        """Start a copy and return it when its tracks are known. Raises `PushFailed`, `NotRead`, `OutboundRefused` or
        `OutboundFailed`."""
        if self.program is None:
            raise PushFailed("source", "The segments of the stream are not CMAF, and there is no ffmpeg to split them.")
        fetched = FetchedStream(client, url)
        try:
            program, confinement = self.program, await self._confinement(self.program)
            sounds = await _sounds(await fetched.head(), program, confinement)
            copy = Copy(fetched, plans[: 1 + bool(sounds)])
            await copy.start(program, confinement, place=min(place, sounds - 1))
        except EncoderFailed as fault:
            await fetched.close()
            raise NotRead(str(fault)) from None
        except BaseException:
            await fetched.close()
            raise
        try:
            async with asyncio.timeout(_BEGIN):
                await copy.wait_for_tracks()
        except TimeoutError:
            await copy.end()
            raise NotRead("ffmpeg produced no tracks from it.") from None
        except BaseException:
            await copy.end()
            raise
        return copy

    async def _confinement(self, program: Path) -> Confinement:
        try:
            return await asyncio.to_thread(self.confinement, program)
        except (AccountError, OSError):
            raise EncoderFailed("the system account of the encoders cannot be used.") from None


@dataclass
class _Output:
    """The pipe of one track."""

    plan: TrackPlan
    boxes: BoxStream = field(default_factory=lambda: BoxStream(most=LARGEST))
    head: bytes = b""
    track: Track | None = None
    feed: TrackFeed | None = None
    waiting: list[QueuedFragment] = field(default_factory=list)

    def take(self, piece: bytes) -> None:
        """Process a piece of the pipe. Raises `Unreadable`."""
        for kind, box in self.boxes.feed(piece):
            if self.feed is not None:
                self.waiting += self.feed.feed(box)
            elif kind in (b"ftyp", b"moov"):
                self.head += box
                if kind == b"moov":
                    self.track = Track(self.plan, header(self.head))
                    self.feed = TrackFeed(self.track)


class _Sounds:
    """Detects changes of one sound in a transport stream, piece by piece."""

    def __init__(self, place: int) -> None:
        self._name = f"a{place}"
        self._headers = Headers()
        self._rest = b""

    def change(self, piece: bytes) -> int | None:
        """Return the number of bytes of the piece before a change, or None if nothing changes."""
        before, data = len(self._rest), self._rest + piece
        if not begins_packets(data):
            return None
        whole = len(data) - len(data) % PACKET
        self._rest = data[whole:]
        places = (sign.place for sign in self._headers.signs(data[:whole]) if sign.track == self._name)
        return next((max(place - before, 0) for place in places), None)


class Copy:
    """A process that copies a stream."""

    def __init__(self, fetched: FetchedStream, plans: Sequence[TrackPlan]) -> None:
        self._fetched = fetched
        self._outputs = [_Output(plan) for plan in plans]
        self._more = asyncio.Event()
        self._sounds: _Sounds | None = None
        self._process: EncodeProcess | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._why = ""
        self._over = False

    @property
    def tracks(self) -> Sequence[Track]:
        return [output.track for output in self._outputs if output.track is not None]

    async def start(self, program: Path, confinement: Confinement, *, place: int) -> None:
        self._sounds = _Sounds(place)
        pipes = Pipes()
        command = [str(program), "-hide_banner", "-loglevel", "level+warning", "-protocol_whitelist", "fd,pipe", "-i", "pipe:0"]
        for output, source in zip(self._outputs, ("0:v:0", f"0:a:{place}"), strict=False):
            pipe = pipes.open(self._receiver(output))
            command += ["-map", source, "-c", "copy", *(() if output.plan.video else _AAC), *_MP4, pipe]
        try:
            self._process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement, feeds=True)
        except OSError as fault:
            raise EncoderFailed(f"ffmpeg cannot be started: {fault.strerror or type(fault).__name__}.") from None
        assert self._process.input is not None
        self._tasks = [
            start_task(self._feed(self._process), what="source of a push"),
            start_task(self._watch_end(self._process), what="end of a copy"),
        ]

    def _receiver(self, output: _Output) -> Callable[[bytes], None]:
        def take(piece: bytes) -> None:
            try:
                if not self._over:
                    output.take(piece)
            except Unreadable as fault:
                self._why, self._over = f"{fault}.", True
            waiting = sum(each.weight for output_with_media in self._outputs for each in output_with_media.waiting)
            if len(output.waiting) > _MOST_WAITING or waiting > _MOST_BYTES:
                self._why, self._over = "its target accepts it too slowly.", True
            self._more.set()

        return take

    async def _feed(self, process: EncodeProcess) -> None:
        assert process.input is not None
        why = await self._fetched.feed(process.input, until=self._ends)
        self._why = self._why or why

    def _ends(self, piece: bytes) -> int | None:
        """Return the place where the sound changes, or None. Fragments do not show such a change, and a receiver learns the rate
        and the channels once."""
        end = None if self._sounds is None else self._sounds.change(piece)
        if end is not None:
            self._why = "the rate or the channels of its sound change, so it starts over."
        return end

    async def _watch_end(self, process: EncodeProcess) -> None:
        try:
            await process.wait()
        finally:
            self._over = True
            self._more.set()

    async def wait_for_tracks(self) -> None:
        """Wait for the headers of all tracks. Raises `NotRead`."""
        while len(self.tracks) < len(self._outputs):
            if self._over:
                raise NotRead(self._why or "ffmpeg cannot split it.")
            self._more.clear()
            await self._more.wait()

    async def read(self, put: Put) -> None:
        """Pass fragments to `put` until the stream is over. Raises `NotRead` if it failed."""
        try:
            while True:
                self._more.clear()
                for output in self._outputs:
                    waiting, output.waiting = output.waiting, []
                    for queued in waiting:
                        await put(queued)
                if self._over and not any(output.waiting for output in self._outputs):
                    break
                await self._more.wait()
            if self._why:
                raise NotRead(self._why)
        finally:
            await self.end()

    async def end(self) -> None:
        if self._process is not None:
            await self._process.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _sounds(head: bytes, program: Path, confinement: Confinement) -> int:
    """Return the number of sounds. Raises `EncoderFailed`."""
    probe = await probe_source(program, confinement=confinement, given=head)
    kinds = [each.get("codec_type") for each in probe.get("streams", ()) if isinstance(each, dict)]
    if "video" not in kinds:
        raise EncoderFailed("it has no picture that can be read.")
    return kinds.count("audio")
