"""Films with captions in their pictures, made by hand since ffmpeg writes none: CEA-608 in both fields and CEA-708, in SEI messages
of H.264 and HEVC and in user data of MPEG-2.

`Line21` composes the pairs of a channel, `triples` spreads those of several channels and services over the frames of a film, and
`captioned` makes the film."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

from tests.support.sources.numbered_frames import probed, tool

Pair = tuple[int, int]
_CHANNELS: Final = {"CC1": (0, 0), "CC2": (0, 8), "CC3": (1, 0), "CC4": (1, 8)}
"""The field of each channel, and what is added to the first byte of its control codes."""
_ROWS: Final = {1: (0x11, 0x40), 11: (0x13, 0x40), 14: (0x14, 0x40), 15: (0x14, 0x60)}
_USUAL: Final = {13: (0x13, 0x60)}
_ENCODERS: Final = {
    "h264": ("-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bf", "2"),
    "hevc": ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:bframes=2"),
    "mpeg2video": ("-c:v", "mpeg2video", "-q:v", "6", "-g", "12", "-bf", "0"),
}


@dataclass
class Line21:
    """The pairs of one channel of CEA-608, by the frame that each begins at."""

    channel: str = "CC1"
    pairs: dict[int, list[Pair]] = field(default_factory=dict)

    def pop_on(self, at: int, *lines: str, until: int | None = None) -> Line21:
        """Shown at once at frame `at`, after it was loaded before, until it is erased."""
        loaded = [self._control(0x20), self._control(0x2E)]
        for row, line in zip((14, 15)[-len(lines) :], lines, strict=True):
            loaded += [self._place(row), *_letters(line)]
        self._put(at - len(loaded), [*loaded, self._control(0x2F)])
        if until is not None:
            self._put(until, [self._control(0x2C)])
        return self

    def roll_up(self, at: int, line: str) -> Line21:
        """A new line in a window of two rows."""
        self._put(at, [self._control(0x25), self._control(0x2D), self._place(15), *_letters(line)])
        return self

    def paint_on(self, at: int, line: str, until: int | None = None) -> Line21:
        """Each letter is shown when it comes."""
        self._put(at, [self._control(0x29), self._place(15), *_letters(line)])
        if until is not None:
            self._put(until, [self._control(0x2C)])
        return self

    def _put(self, at: int, pairs: list[Pair]) -> None:
        for number, pair in enumerate(pairs):
            self.pairs.setdefault(at + number, []).append(pair)

    def _control(self, code: int) -> Pair:
        field_number, offset = _CHANNELS[self.channel]
        return (0x14 | field_number | offset, code)

    def _place(self, row: int) -> Pair:
        first, second = (_ROWS | _USUAL)[row]
        return (first | _CHANNELS[self.channel][1], second | 0x10)


def dtvcc(*blocks: tuple[int, str]) -> list[bytes]:
    """A packet of CEA-708: a window and text for each service, in triples without their first byte of flags."""
    content = b""
    for service, text in blocks:
        shown = bytes([0x98, 0x3F, 0x5A, 0x60, 0x1F, 0x1F, 0x11]) + text.encode() + b"\x03"
        content += bytes([service << 5 | len(shown)]) + shown
    content += b"\0" * (1 - len(content) % 2)
    packet = bytes([(len(content) + 1) // 2]) + content
    return [packet[at : at + 2] for at in range(0, len(packet), 2)]


def triples(frames: int, *channels: Line21, services: Mapping[int, Sequence[bytes]] | None = None) -> list[bytes]:
    """The `cc_data` of each frame: a pair of each field, and the CEA-708 packets of `services` by their frames."""
    queues: list[dict[int, list[Pair]]] = [{}, {}]
    for channel in channels:
        for at, pairs in channel.pairs.items():
            queues[_CHANNELS[channel.channel][0]].setdefault(at, []).extend(pairs)
    waiting: list[list[Pair]] = [[], []]
    result = []
    for frame in range(frames):
        made = []
        for number in (0, 1):
            waiting[number] += queues[number].get(frame, [])
            first, second = waiting[number].pop(0) if waiting[number] else (0, 0)
            made.append(bytes((0xFC | number, _odd(first), _odd(second))))
        for number, packet in enumerate((services or {}).get(frame, ())):
            made.append(bytes([0xFE | (number == 0)]) + packet)
        result.append(bytes([0xC0 | len(made), 0xFF]) + b"".join(made) + b"\xff")
    return result


def captioned(
    path: Path,
    data: Sequence[bytes],
    *,
    codec: str = "h264",
    fps: int = 25,
    coded: Sequence[str] = (),
    options: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> None:
    """A film of as many frames as `data` has, with sound, in the container that the name of `path` says. `coded` are further
    options of its encoder, `options` those of the last run of ffmpeg, which copies the picture. `inputs` are a picture and a
    sound instead of a test picture and a tone."""
    raw = path.with_name(f"{path.name}.raw.{'m2v' if codec == 'mpeg2video' else 'flv'}")
    tone = ("-f", "lavfi", "-t", str(len(data) / fps), "-i", "sine=440:r=48000")
    drawn = inputs or ("-f", "lavfi", "-i", f"testsrc=s=128x96:r={fps}", *tone)
    shown = (*drawn, "-map", "0:v", "-frames:v", str(len(data)), "-pix_fmt", "yuv420p")
    _ffmpeg(*shown, *_ENCODERS[codec], *coded, str(raw))
    if codec == "mpeg2video":
        raw.write_bytes(_user_data(raw.read_bytes(), data))
    else:
        packets = probed(raw, "-show_entries", "packet=pts")["packets"]
        order = sorted(range(len(packets)), key=lambda index: int(packets[index]["pts"]))
        shown_as = {coded: number for number, coded in enumerate(order)}
        raw.write_bytes(_tags(raw.read_bytes(), [data[shown_as[coded]] for coded in range(len(packets))], codec))
    timed = ("-bsf:v", f"setts=ts=N/({fps}*TB)") if codec == "mpeg2video" else ()
    tracks = ("-map", "0:v", "-map", "2:a", "-c:v", "copy", *timed, "-c:a", "aac", "-shortest")
    _ffmpeg("-i", str(raw), *drawn, *tracks, *options, str(path))
    raw.unlink()


def _letters(text: str) -> list[Pair]:
    codes = text.encode("ascii")
    return [(first, second) for first, second in zip_longest(codes[::2], codes[1::2], fillvalue=0)]


def _odd(value: int) -> int:
    return value | 0x80 if value.bit_count() % 2 == 0 else value


def _message(data: bytes) -> bytes:
    return b"\xb5\x00\x31GA94\x03" + data


def _tags(flv: bytes, data: Sequence[bytes], codec: str) -> bytes:
    """The FLV file with an SEI unit before each picture."""
    header = b"\x06" if codec == "h264" else b"\x4e\x01"
    made, at, number = bytearray(flv[:13]), 13, 0
    while at + 11 <= len(flv):
        kind, size = flv[at], int.from_bytes(flv[at + 1 : at + 4], "big")
        body = flv[at + 11 : at + 11 + size]
        begin = _coded(body, codec) if kind == 9 else None
        if begin is not None:
            payload = _message(data[number])
            sei = bytes([4, len(payload)]) + payload + b"\x80"
            unit = header + re.sub(b"\x00\x00([\x00-\x03])", b"\x00\x00\x03\\1", sei)
            body = body[:begin] + len(unit).to_bytes(4, "big") + unit + body[begin:]
            number += 1
        tag = bytes([kind]) + len(body).to_bytes(3, "big") + flv[at + 4 : at + 11] + body
        made += tag + len(tag).to_bytes(4, "big")
        at += 11 + size + 4
    return bytes(made)


def _coded(body: bytes, codec: str) -> int | None:
    """Return where the units of a picture begin in a video tag, or None if it has no picture."""
    if body[0] & 0x80:  # with the four letters of its codec
        return {1: 8, 3: 5}.get(body[0] & 0x0F)
    return 5 if body[1] == 1 else None


def _user_data(stream: bytes, data: Sequence[bytes]) -> bytes:
    """The elementary stream of MPEG-2 with user data before the first slice of each picture."""
    pictures: Iterable[bytes] = re.split(b"(?=\x00\x00\x01\x00)", stream)
    head, *rest = pictures
    made = bytearray(head)
    for picture, captions in zip(rest, data, strict=True):
        at = picture.index(b"\x00\x00\x01\x01")
        made += picture[:at] + b"\x00\x00\x01\xb2GA94\x03" + captions + picture[at:]
    return bytes(made)


def _ffmpeg(*arguments: str) -> None:
    subprocess.run([tool("ffmpeg"), "-v", "error", "-nostdin", "-y", *arguments], check=True)
