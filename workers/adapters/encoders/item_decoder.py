"""The decoder of one item of a playout: a confined process that writes pictures and sounds in the form of the canvas, as fast as
they are read."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from domain.channel.encoder_settings import SAMPLE_RATE
from workers.adapters.encoders.canvas import CHANNELS, SAMPLE, Canvas
from workers.adapters.encoders.encode_command import JUMPS
from workers.adapters.encoders.probe import probe_source, quotient, tracks_of
from workers.adapters.encoders.process import EncodeProcess, Pipes
from workers.adapters.encoders.raw_pipes import RawReader, pipe, readable
from workers.kernel.confinement import Confinement
from workers.media.colours import FILM, Colours
from workers.media.filters import FilteredTrack, FormedTracks, sound_form
from workers.ports.encoders import EncoderFailed
from workers.ports.playout import OpenedItem, Unplayable

PRIMED: Final = 10.0
"""Seconds within which a decoder must give its first picture."""
LONG_SOUND: Final = 0.5
"""Seconds by which the sound of an item must be longer than its picture for the last picture to stay for the rest of it."""
_AHEAD: Final = 64 * 1024 * 1024
"""The limit of buffered pictures, in bytes, for files whose sound comes late."""
_AHEAD_SOUND: Final = 120 * SAMPLE_RATE * SAMPLE
"""The limit of buffered sound, in bytes, for files whose next picture comes late because the picture is still."""
_SOUGHT_EARLIER: Final = 12.0
"""Seconds by which a stream without an index of key frames is read earlier: it is sought by time, and decoded from the next key
frame."""
_WITHOUT_INDEX: Final = frozenset({"mpegts", "mpeg", "mpegvideo", "h264", "hevc"})
_WHITELIST: Final = ("-protocol_whitelist", "fd,pipe")
_LOOKED_AT: Final = 20.0
"""Seconds of an item within which its first picture is searched."""
_BEFORE: Final = 0.002
"""Seconds by which an item is read earlier, so that rounding does not cut off the picture at its beginning."""
_LINES: Final = 2_000
_SHOWN: Final = "first_shown"


@dataclass(frozen=True, slots=True)
class ItemStreams:
    """The tracks and the length of an item. Its time begins with the first picture that is shown, `begins` seconds after the
    beginning of its file. `length` is in seconds; it is None if the item gives none."""

    picture: int | None
    sound: int | None
    length: float | None
    begins: float = 0.0
    rate: float | None = None
    """The mean number of pictures per second."""
    indexed: bool = True
    """True if ffmpeg can seek the key frames of the item."""
    colours: Colours = FILM

    @classmethod
    def of(cls, probe: Mapping[str, Any], *, sound: int) -> ItemStreams:
        """Return the streams in the output of ffprobe. Raises `Unplayable`."""
        streams = tracks_of(probe)
        pictures = [each for each in streams if each.get("codec_type") == "video"]
        sounds = [each for each in streams if each.get("codec_type") == "audio"]
        if not pictures and not sounds:
            raise Unplayable("It has neither a picture nor a sound that can be read.")
        taken = sounds[sound if sound < len(sounds) else 0] if sounds else None
        start, begins = _time(probe.get("format")) or 0.0, _time(probe.get(_SHOWN)) if pictures else None
        lead = max(begins - start, 0.0) if begins is not None else 0.0
        longest = _end(pictures[0] if pictures else None) or _end(probe.get("format")) or _end(taken)
        length = None if longest is None else max(longest - start - lead, 0.0)
        rate = quotient(pictures[0].get("avg_frame_rate")) if pictures else None
        indexed = _WITHOUT_INDEX.isdisjoint(str(probe.get("format", {}).get("format_name")).split(","))
        picture, heard = _index(pictures[0]) if pictures else None, _index(taken) if taken else None
        colours = Colours.of(pictures[0]) if pictures else FILM
        return cls(picture, heard, length or None, lead, rate, indexed, colours)


@dataclass(frozen=True, slots=True)
class Slot:
    """The picture and the sound for the time of one frame."""

    picture: bytes
    sound: bytes


class Over(Exception):
    """Raised when the item has ended."""


class ItemDecoder:
    """The pictures and sounds of one item, each taken once, in order."""

    def __init__(self, process: EncodeProcess, canvas: Canvas, *, pictures: RawReader | None, sounds: RawReader | None) -> None:
        self._process = process
        self._canvas = canvas
        self._pictures = pictures
        self._sounds = sounds
        self._last = canvas.black
        self._holds = pictures is None
        self._owed: list[int] = []
        self._unawaited = 0
        """Pictures that were not waited for. The previous picture was shown instead of each."""
        self.frames = 0
        """The number of frames that were taken or skipped."""

    @classmethod
    async def start(
        cls, program: Path, item: OpenedItem, *, streams: ItemStreams, canvas: Canvas, confinement: Confinement
    ) -> ItemDecoder:
        """Start a decoder, which takes over the descriptor of the item. Raises `Unplayable`."""
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

    async def wait_for_first(self, *, seconds: float = PRIMED) -> None:
        """Wait for the first picture or sound. Raises `Unplayable` if none comes."""
        until = time.monotonic() + seconds
        while not self._has_first():
            if all(each.over for each in self._readers):
                await self._process.wait()
                last_line = self._process.last_line.rstrip(".")
                raise Unplayable(f"Nothing of it can be decoded{': ' + last_line if last_line else ''}.")
            if time.monotonic() >= until:
                raise Unplayable(f"Its decoder gives no picture within {seconds:g} s.")
            await self.read_more(seconds=until - time.monotonic())

    def leave_out(self, frame: int, count: int = 1) -> None:
        """Skip frames that are late already. The first of them is the one for this frame of the stream."""
        self._owed += [self._canvas.samples(frame + each) * SAMPLE for each in range(count)]

    def take(self, frame: int) -> Slot | None:
        """Return the slot for this frame of the stream; None if it has not come yet. Raises `Over`."""
        while self._owed:
            if self._next_slot(self._owed[0]) is None:
                return None
            self._owed.pop(0)
        return self._next_slot(self._canvas.samples(frame) * SAMPLE)

    def bridge(self, frame: int) -> Slot:
        """Return the last picture again, with the sound of the frame if it has come. The frame is skipped when it comes late, so
        the item ends at its due time."""
        size = self._canvas.samples(frame) * SAMPLE
        if not self._owed and self._sounds is not None and self._pictures is not None and self._sounds.pull(size):
            return self._still_picture(size)
        self.leave_out(frame)
        return Slot(self._last, bytes(size))

    async def read_more(self, *, seconds: float) -> None:
        """Wait until more was read, at most this many seconds. The surplus of one stream is buffered, so that in the decoder
        neither stream waits for the other."""
        with_room = [reader for reader in self._readers if not reader.over and reader.size < self._limit(reader)]
        await readable(with_room, seconds=seconds)
        for reader in with_room:
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
        if self._pictures is None or self._sounds is None:
            return False
        return self._far_behind or (self._pictures.over and self._sounds.pull(SAMPLE))

    def _next_slot(self, sound: int) -> Slot | None:
        """Return the next frame with this many bytes of sound; None if it has not come yet. Raises `Over`."""
        pictures, sounds, size = self._pictures, self._sounds, self._canvas.picture_bytes
        shows = self._has_next_picture()
        if not shows and pictures is not None and not pictures.over:
            return self._still_picture(sound) if self._far_behind else None
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

    def _has_next_picture(self) -> bool:
        """Return True if the next picture has come."""
        pictures, size = self._pictures, self._canvas.picture_bytes
        while pictures is not None and pictures.pull(size):
            if not self._unawaited:
                return True
            self._unawaited -= 1
            self._last = pictures.take(size)
        return False

    def _still_picture(self, sound: int) -> Slot:
        """Return the last picture while its stream continues: a still picture may have no frames for minutes."""
        assert self._sounds is not None
        self._unawaited += 1
        self.frames += 1
        return Slot(self._last, self._sounds.take(sound))

    @property
    def _far_behind(self) -> bool:
        """True if so much sound waits for the next picture that the item continues without it."""
        return self._sounds is not None and self._sounds.size >= _AHEAD_SOUND

    def _too_far_ahead(self, shows: bool) -> bool:
        """Return True if so many pictures wait for sound that the item continues without it."""
        return shows and self._pictures is not None and self._pictures.size >= self._limit(self._pictures)


async def inspect_item(
    program: Path, item: OpenedItem, *, confinement: Confinement, cache: dict[tuple[int, ...], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the output of ffprobe for the item, with the time of its first displayed picture. `known` caches it by the version of
    the file, so an unchanged file is not read again. Raises `Unplayable`."""
    status = os.fstat(item.descriptor)
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if version not in cache:
        try:
            async with asyncio.timeout(PRIMED):
                probe = await probe_source(program, confinement=confinement, descriptor=reopen(item.descriptor))
                shown = await _first_shown(program, item, probe=probe, confinement=confinement)
                cache[version] = {**probe, _SHOWN: {"start_time": shown}}
        except EncoderFailed as fault:
            raise Unplayable(str(fault).replace("The source", "It", 1)) from None
        except TimeoutError:
            raise Unplayable("ffprobe did not finish reading it in time.") from None
        while len(cache) > _MOST_KNOWN:
            del cache[next(iter(cache))]
    return cache[version]


_MOST_KNOWN: Final = 2_000


def reopen(descriptor: int) -> int:
    """Open the same file once more, with a separate read position."""
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)


async def _first_shown(program: Path, item: OpenedItem, *, probe: Mapping[str, Any], confinement: Confinement) -> str | None:
    """Return the time of the first picture that a decoder shows. It differs from the time of the first packet if a recording begins
    between two key frames."""
    pictures = [each for each in tracks_of(probe) if each.get("codec_type") == "video"]
    if not pictures:
        return None
    output = bytearray()
    pipes = Pipes()
    shown = pipes.open(lambda piece: output.extend(piece[: _LINES - len(output)]))
    descriptor = reopen(item.descriptor)
    pipes.hand(descriptor)
    command = [str(program), "-hide_banner", "-nostdin", "-loglevel", "error", "-threads", "1", "-copyts", "-t", f"{_LOOKED_AT:g}"]
    command += [*_WHITELIST, "-fd", str(descriptor), "-i", "fd:", "-map", f"0:{_index(pictures[0])}", "-frames:v", "1"]
    command += ["-fps_mode", "passthrough", "-enc_time_base", "1:1000000", "-f", "framecrc", shown]
    try:
        process = await EncodeProcess.start(command, pipes=pipes, confinement=confinement)
    except OSError:
        raise Unplayable("Its decoder cannot be started.") from None
    try:
        await process.wait()
    finally:
        await process.kill()
    lines = [line.split(b",") for line in output.splitlines() if not line.startswith(b"#")]
    try:
        return f"{int(lines[0][2]) / 1_000_000:.6f}"
    except (IndexError, ValueError):
        return None


def _command(
    program: Path, item: OpenedItem, *, streams: ItemStreams, canvas: Canvas, outputs: Sequence[int | None]
) -> Sequence[str]:
    """Return the command of a decoder.

    Sound is decoded twice, as in an encode: the filter that counts its time sees one form, whatever the sound changes to in the
    middle. Both graphs begin and end by times of the file, because `-t` counts from zero in each graph that is rebuilt.
    """
    begin_in_file = streams.begins + item.start
    seek = max(begin_in_file - (_BEFORE if streams.indexed else _SOUGHT_EARLIER), 0.0)
    begins = begin_in_file - seek
    ends = None if item.end is None else begins + max(item.end - item.start, 0.0)
    pictures, sounds = outputs
    command = [str(program), "-hide_banner", "-nostdin", "-loglevel", "level+error", "-threads", "4", *JUMPS]
    command += [*(("-ss", f"{seek:.6f}") if seek else ()), *(("-t", f"{ends + 1:.6f}") if ends is not None else ())]
    command += [*_WHITELIST, "-fd", str(item.descriptor), "-i", "fd:"]
    if sounds is not None:
        formed = FormedTracks((FilteredTrack(f"0:{streams.sound}", sound_form(CHANNELS), is_picture=False),))
        command += [*formed.options(), "-filter_complex", f"[{formed.label(0)}]{canvas.sound_filter}{_part('a', begins, ends)}[a]"]
    if pictures is not None:
        # The filter chooses frames of a fast source evenly. It gives none before it has the next, which a slow one may give late.
        even = f"fps={canvas.rate}," if streams.rate is not None and streams.rate > canvas.rate else ""
        part = _part("", begins, ends, earlier=_BEFORE).removeprefix(",")
        command += ["-filter_complex", f"[0:{streams.picture}]{part},{even}{canvas.picture_filter(streams.colours)}[v]"]
        command += ["-map", "[v]", "-fps_mode", "cfr", "-r", str(canvas.rate), "-f", "rawvideo", f"pipe:{pictures}"]
    if sounds is not None:
        command += ["-map", "[a]", "-c:a", "pcm_s16le", "-f", "s16le", f"pipe:{sounds}"]
    return command


def _part(kind: str, begins: float, ends: float | None, /, *, earlier: float = 0.0) -> str:
    """Return filters that cut out a part whose time begins with 0. `kind` is `a` for sound."""
    end = f":end={max(ends - earlier, 0.0):.6f}" if ends is not None else ""
    return f",{kind}trim=start={max(begins - earlier, 0.0):.6f}{end},{kind}setpts=PTS-{begins:.6f}/TB"


def _index(stream: Mapping[str, Any]) -> int:
    return int(stream.get("index", 0))


def _end(part: Mapping[str, Any] | None) -> float | None:
    """Return the end of a stream or file, by the clock of its file; None if it is unknown."""
    length = _time(part, "duration")
    return None if length is None or not 0.0 < length < 10**7 else (_time(part) or 0.0) + length


def _time(part: Mapping[str, Any] | None, name: str = "start_time") -> float | None:
    try:
        seconds = float(part.get(name) or "") if isinstance(part, dict) else math.nan
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) else None
