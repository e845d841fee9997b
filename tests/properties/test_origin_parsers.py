"""The parsers of the origin for input of encoders: any input is accepted or refused, in time and memory bounded by its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties.bounds import MIB, bounded
from tests.workers.origin.mp4 import AAC, AVC, box, fragment, init
from workers.media.boxes import boxes
from workers.media.errors import Unreadable
from workers.media.fragment_stream import FragmentStream, StreamPiece
from workers.media.fragments import read_fragments, read_init
from workers.origin.incoming_playlist import IncomingPlaylist, MasterPlaylist, read_playlist
from workers.origin.limits import MOST_PLAYLIST, UploadRefused

STREAM = init(AVC) + fragment(0) + fragment(1) + box("free", b"x" * 20) + fragment(2) + box("mfra")
MEDIA = b"""#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:17
#EXT-X-MAP:URI="v0-7.mp4"
#EXT-X-PROGRAM-DATE-TIME:2031-01-02T12:00:00.000Z
#EXTINF:2.000,
v0-7-17.m4s
#EXT-X-DISCONTINUITY
#EXT-X-KEY:METHOD=NONE
#EXTINF:1.5,
v0-7-18.m4s
#EXT-X-ENDLIST
"""
MASTER = b"""#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="A",LANGUAGE="en",URI="a0.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360,AUDIO="a"
v0.m3u8
"""
_EXTREMES = (
    b"\0" * 4,
    b"\0\0\0\1",
    b"\0\0\0\7",
    b"\0\0\0\x08",
    b"\x7f\xff\xff\xff",
    b"\xff" * 4,
    b"\xff" * 8,
    b'"',
    b":",
    b"\n",
    b"\xf0\x9f",
)


@st.composite
def spoilt(draw: st.DrawFn, good: bytes) -> bytes:
    """A good input that was cut, doubled in parts and overwritten in some places."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("cut", "insert", "overwrite", "double"))):
            case "cut":
                del data[at : at + draw(st.integers(0, 40))]
            case "insert":
                data[at:at] = draw(st.sampled_from(_EXTREMES) | st.binary(max_size=8))
            case "overwrite":
                piece = draw(st.sampled_from(_EXTREMES) | st.binary(max_size=8))
                data[at : at + len(piece)] = piece
            case "double":
                data[at:at] = data[at : at + draw(st.integers(0, 200))]
    return bytes(data)


def streamed(data: bytes, sizes: Sequence[int]) -> tuple[list[StreamPiece], bool]:
    """As it comes in pieces of these sizes, over and over; and whether it was taken whole."""
    stream, at, number = FragmentStream(most=MIB), 0, 0
    pieces: list[StreamPiece] = []
    try:
        while at < len(data):
            pieces += stream.take(data[at : at + sizes[number % len(sizes)]])
            at, number = at + sizes[number % len(sizes)], number + 1
    except Unreadable:
        return pieces, False
    return pieces, True


def whole(pieces: Sequence[StreamPiece]) -> list[tuple[str, bytes]]:
    """Media data put together again."""
    boxes: list[tuple[str, bytes]] = []
    for piece in pieces:
        if piece.kind == "data" and boxes and boxes[-1][0] == "data":
            boxes[-1] = ("data", boxes[-1][1] + piece.data)
        else:
            boxes.append((piece.kind, piece.data))
    return boxes


def read(data: bytes) -> None:
    """All that is read of a stream, from its boxes to its codecs."""
    with suppress(Unreadable):
        list(boxes(memoryview(data)))
    pieces, _ = streamed(data, [len(data) or 1])
    described = None
    for piece in pieces:
        with suppress(Unreadable):
            if piece.kind == "init":
                described = read_init(piece.data)
            elif piece.kind == "moof" and described is not None:
                read_fragments([memoryview(piece.data)[8:]], described)


@given(st.binary(max_size=400) | spoilt(STREAM) | spoilt(init(AVC, AAC) + fragment(0)))
@example(b"")
@example(b"\0\0\0\1mdat" + b"\0" * 8)
@example(box("moov", box("trak", box("mdia"))))
def test_a_stream_of_fragments_is_read_or_refused(data: bytes) -> None:
    read(data)


@given(st.just(STREAM) | spoilt(STREAM), st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_a_stream_is_the_same_in_whatever_pieces_it_comes(data: bytes, sizes: Sequence[int]) -> None:
    at_once, cut = streamed(data, [len(data) or 1]), streamed(data, sizes)
    assert at_once[1] == cut[1]
    assert whole(at_once[0]) == whole(cut[0])


@given(st.binary(max_size=300).map(lambda rest: b"#EXTM3U\n" + rest) | st.binary(max_size=60) | spoilt(MEDIA) | spoilt(MASTER))
@example(b"\xef\xbb\xbf#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:0001-01-01T00:00:00+23:59\n#EXTINF:1,\na.m4s")
@example(b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:999999999999999999\n#EXTINF:1,\na.m4s")
def test_a_playlist_is_read_or_refused(data: bytes) -> None:
    with suppress(UploadRefused):
        playlist = read_playlist(data, "main/v0.m3u8")
        assert isinstance(playlist, IncomingPlaylist | MasterPlaylist)
        names = [segment.path for segment in playlist.segments] if isinstance(playlist, IncomingPlaylist) else list(playlist.tracks)
        assert not [name for name in names if name.startswith("/") or ".." in name.split("/")]


def _trun(flags: int, samples: int, *fields: int) -> bytes:
    return box("trun", pack(f">II{len(fields)}I", flags, samples, *fields))


def _moof(*runs: bytes) -> bytes:
    times = (box("tfhd", pack(">III", 0x020008, 1, 1)), box("tfdt", pack(">II", 0, 0)))
    return box("moof", box("traf", *times, *runs))


HOSTILE: dict[str, Callable[[], object]] = {
    "many runs of many samples": lambda: read(init(AVC) + _moof(*[_trun(0, 100_000)] * 1_500) + box("mdat")),
    "many runs that claim what they lack": lambda: read(init(AVC) + _moof(*[_trun(0x200, 100_000)] * 1_500) + box("mdat")),
    "many fragments of many samples": lambda: read(init(AVC) + (_moof(_trun(0, 100_000)) + box("mdat")) * 1_500),
    "many boxes": lambda: read(box("free") * 20_000),
    "many tracks": lambda: read(box("moov", box("mvex", box("trex", bytes(24))), *[box("trak")] * 20_000)),
    "boxes in boxes": lambda: read(_nested(20_000)),
    "a box that never ends": lambda: streamed(b"\x7f\xff\xff\xffmoov" + bytes(MIB), [7]),
    "a box in single bytes": lambda: streamed(init(AVC) + box("free", bytes(60_000)), [1]),
    "long attributes": lambda: _playlist(b"#EXT-X-STREAM-INF:" + b"A" * (MOST_PLAYLIST - 40)),
    "open quotes": lambda: _playlist(b"#EXT-X-MEDIA:" + b'A="' * ((MOST_PLAYLIST - 40) // 3)),
    "many lines": lambda: _playlist(b"\n" * (MOST_PLAYLIST - 40)),
    "many segments": lambda: _playlist(b"#EXTINF:1,\na.m4s\n" * (MOST_PLAYLIST // 17 - 1)),
    "a long name": lambda: _playlist(b"#EXTINF:1,\n" + b"../" * (MOST_PLAYLIST // 3 - 20)),
    "many attributes": lambda: _playlist(b'#EXT-X-MAP:URI="i.mp4"\n' * (MOST_PLAYLIST // 24)),
    "a long number": lambda: _playlist(b"#EXT-X-MEDIA-SEQUENCE:" + b"9" * (MOST_PLAYLIST - 40)),
}


def _nested(deep: int) -> bytes:
    sizes = range(8 * deep, 0, -8)
    return b"".join(pack(">I", size) + b"moov" for size in sizes)


def _playlist(body: bytes) -> None:
    with suppress(UploadRefused):
        read_playlist(b"#EXTM3U\n" + body, "v0.m3u8")


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_sent_to_waste_time_and_memory_wastes_little(name: str) -> None:
    bounded(HOSTILE[name])
