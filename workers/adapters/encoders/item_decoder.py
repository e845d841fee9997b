"""The decoder of one item of a playout: a confined process that writes pictures and sounds in the form of the canvas, as fast as
they are taken."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from domain.configuration.encoder_settings import SAMPLE_RATE
from workers.adapters.encoders.canvas import SAMPLE, Canvas
from workers.adapters.encoders.probe import probed
from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.encoders.raw_pipes import RawReader, pipe, readable
from workers.kernel.confinement import Confinement
from workers.playout_ports import OpenedItem, Unplayable
from workers.ports import EncoderFailed

PRIMED: Final = 10.0
"""Seconds in which a decoder has its first picture."""
LONG_SOUND: Final = 0.5
"""Seconds by which the sound of an item must be longer than its picture, so that the last picture stays for the rest of it."""
_AHEAD: Final = 64 * 1024 * 1024
"""Bytes of pictures that are kept where the sound of a file comes late in it."""
_AHEAD_SOUND: Final = 20 * SAMPLE_RATE * SAMPLE
_WHITELIST: Final = ("-protocol_whitelist", "fd,pipe")


@dataclass(frozen=True, slots=True)
class Streams:
    """What an item has. `length` is in seconds, from the first to the last of its streams; None where it says none."""

    picture: int | None
    sound: int | None
    length: float | None

    @classmethod
    def of(cls, found: Mapping[str, Any], *, sound: int) -> Streams:
        """Of what ffprobe shows. Raises `Unplayable`."""
        streams = [each for each in found.get("streams", ()) if isinstance(each, dict)]
        pictures = [each for each in streams if each.get("codec_type") == "video" and not _is_cover(each)]
        sounds = [each for each in streams if each.get("codec_type") == "audio"]
        if not pictures and not sounds:
            raise Unplayable("It has neither a picture nor a sound that can be read.")
        taken = sounds[sound if sound < len(sounds) else 0] if sounds else None
        longest = _seconds(pictures[0]) if pictures else None
        length = longest or _seconds(found.get("format")) or _seconds(taken)
        return cls(_index(pictures[0]) if pictures else None, _index(taken) if taken else None, length)


@dataclass(frozen=True, slots=True)
class Slot:
    """What is shown for the time of one frame."""

    picture: bytes
    sound: bytes


class Over(Exception):
    """The item has no more."""


class ItemDecoder:
    """Pictures and sounds of one item, each taken once, in order."""

    def __init__(self, process: EncodeProcess, canvas: Canvas, *, pictures: RawReader | None, sounds: RawReader | None) -> None:
        self._process = process
        self._canvas = canvas
        self._pictures = pictures
        self._sounds = sounds
        self._last = canvas.black
        self._holds = pictures is None
        self._owed: list[int] = []
        self.frames = 0
        """That were taken or left out."""

    @classmethod
    async def start(
        cls, program: Path, item: OpenedItem, *, streams: Streams, canvas: Canvas, confinement: Confinement
    ) -> ItemDecoder:
        """Takes the descriptor of the item. Raises `Unplayable`."""
        pipes = Pipes()
        pipes.hand(item.descriptor)
        ends = [pipe() if stream is not None else None for stream in (streams.picture, streams.sound)]
        for end in filter(None, ends):
            pipes.hand(end[1])
        readers = [None if end is None else RawReader(end[0]) for end in ends]
        outputs = [None if end is None else end[1] for end in ends]
        try:
            command = _command(program, item, streams=streams, canvas=canvas, outputs=outputs)
            process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement)
        except BaseException as fault:
            for reader in filter(None, readers):
                reader.close()
            if isinstance(fault, OSError):
                raise Unplayable("Its decoder cannot be started.") from None
            raise
        return cls(process, canvas, pictures=readers[0], sounds=readers[1])

    async def primed(self, *, seconds: float = PRIMED) -> None:
        """Until the first picture or sound is there. Raises `Unplayable` where none comes."""
        until = time.monotonic() + seconds
        while not self._has_first():
            if all(each.over for each in self._readers):
                await self._process.wait()
                said = self._process.last_line.rstrip(".")
                raise Unplayable(f"Nothing of it can be decoded{': ' + said if said else ''}.")
            if time.monotonic() >= until:
                raise Unplayable(f"Its decoder gives no picture within {seconds:g} s.")
            await self.more(seconds=until - time.monotonic())

    def leave_out(self, frame: int, count: int = 1) -> None:
        """So many frames are not to be shown, of which the first is for this frame of the stream: it is later already."""
        self._owed += [self._canvas.samples(frame + each) * SAMPLE for each in range(count)]

    def take(self, frame: int) -> Slot | None:
        """For this frame of the stream; None where it has not come yet. Raises `Over`."""
        while self._owed:
            if self._taken(self._owed[0]) is None:
                return None
            self._owed.pop(0)
        return self._taken(self._canvas.samples(frame) * SAMPLE)

    def repeated(self, frame: int) -> Slot:
        """What was shown last, without a sound."""
        return Slot(self._last, bytes(self._canvas.samples(frame) * SAMPLE))

    async def more(self, *, seconds: float) -> None:
        """Until more has come, or so many seconds are over. What one stream has ahead of the other is kept, so that neither waits
        for the other in the decoder."""
        wanted = [reader for reader in self._readers if not reader.over and reader.size < self._limit(reader)]
        await readable(wanted, seconds=seconds)
        for reader in wanted:
            reader.pull(min(reader.size + self._step(reader), self._limit(reader)))

    async def close(self) -> None:
        await self._process.kill()
        for reader in self._readers:
            reader.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_line(self) -> str:
        return self._process.last_line

    @property
    def _readers(self) -> Sequence[RawReader]:
        return [each for each in (self._pictures, self._sounds) if each is not None]

    def _limit(self, reader: RawReader) -> int:
        return max(_AHEAD, self._canvas.picture_bytes) if reader is self._pictures else _AHEAD_SOUND

    def _step(self, reader: RawReader) -> int:
        return self._canvas.picture_bytes if reader is self._pictures else SAMPLE_RATE // 10 * SAMPLE

    def _has_first(self) -> bool:
        reader = self._pictures or self._sounds
        if reader is not None and reader.pull(self._step(reader) if reader is self._pictures else SAMPLE):
            return True
        return bool(self._pictures is not None and self._pictures.over and self._sounds is not None and self._sounds.pull(SAMPLE))

    def _taken(self, sound: int) -> Slot | None:
        """The next frame, with so many bytes of sound."""
        pictures, sounds, size = self._pictures, self._sounds, self._canvas.picture_bytes
        shows = pictures is not None and pictures.pull(size)
        if not shows and pictures is not None and not pictures.over:
            return None
        needed = sound if shows or self._holds else max(int(LONG_SOUND * SAMPLE_RATE) * SAMPLE, sound)
        if sounds is not None and not sounds.pull(needed) and not sounds.over and not self._too_far_ahead(shows):
            return None
        if not shows:
            if sounds is None or sounds.size < (needed // 2 if self._holds else needed):
                raise Over
            self._holds = True
        elif pictures is not None:
            self._last = pictures.take(size)
        heard = b"" if sounds is None else sounds.take(sound)
        self.frames += 1
        return Slot(self._last, heard + bytes(sound - len(heard)))

    def _too_far_ahead(self, shows: bool) -> bool:
        """So many pictures wait for a sound that it is not waited for any more."""
        return shows and self._pictures is not None and self._pictures.size >= self._limit(self._pictures)


async def looked_at(
    program: Path, item: OpenedItem, *, confinement: Confinement, known: dict[tuple[int, ...], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """What ffprobe shows of the item; of a file that has not changed it is `known`. Raises `Unplayable`."""
    status = os.fstat(item.descriptor)
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if version not in known:
        try:
            async with asyncio.timeout(PRIMED):
                known[version] = await probed(program, confinement=confinement, descriptor=again(item.descriptor))
        except EncoderFailed as fault:
            raise Unplayable(str(fault).replace("The source", "It", 1)) from None
        except TimeoutError:
            raise Unplayable("ffprobe does not come to an end with it.") from None
        while len(known) > _MOST_KNOWN:
            del known[next(iter(known))]
    return known[version]


_MOST_KNOWN: Final = 2_000


def again(descriptor: int) -> int:
    """The same file, opened once more: who reads it has a place of its own in it."""
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)


def _command(program: Path, item: OpenedItem, *, streams: Streams, canvas: Canvas, outputs: Sequence[int | None]) -> Sequence[str]:
    begin = ("-ss", f"{item.start:.6f}") if item.start > 0 else ()
    end = ("-t", f"{max(item.end - item.start, 0.0):.6f}") if item.end is not None else ()
    command = [str(program), "-hide_banner", "-nostdin", "-loglevel", "level+error", "-threads", "4", *begin, *end]
    command += [*_WHITELIST, "-fd", str(item.descriptor), "-i", "fd:"]
    pictures, sounds = outputs
    if pictures is not None:
        command += ["-map", f"0:{streams.picture}", "-vf", canvas.picture_filter, "-fps_mode", "passthrough", "-an", "-sn", "-dn"]
        command += ["-f", "rawvideo", "-pix_fmt", "yuv420p", f"pipe:{pictures}"]
    if sounds is not None:
        command += ["-map", f"0:{streams.sound}", "-af", canvas.sound_filter, "-vn", "-sn", "-dn", "-f", "s16le", f"pipe:{sounds}"]
    return command


def _is_cover(stream: Mapping[str, Any]) -> bool:
    """A picture on the cover of a sound."""
    disposition = stream.get("disposition")
    return isinstance(disposition, dict) and bool(disposition.get("attached_pic"))


def _index(stream: Mapping[str, Any]) -> int:
    return int(stream.get("index", 0))


def _seconds(part: object) -> float | None:
    try:
        seconds = float(part.get("duration", "")) if isinstance(part, dict) else 0.0
    except (TypeError, ValueError):
        return None
    return seconds if 0.0 < seconds < 10**7 else None
