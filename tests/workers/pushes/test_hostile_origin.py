"""Media that an origin of somebody else sends to a push: they are read or refused, in time and memory that its size bounds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.properties.bounds import MIB, bounded
from tests.properties.test_origin_parsers import spoilt
from tests.workers.origin.mp4 import AAC, AVC, SCALE, box, fragment, init
from workers.adapters.encoders.flv_tags import TagInterleaver
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.tracks import Track
from workers.adapters.pushes.live_stream import PICTURE, SOUND, OpenStream
from workers.adapters.pushes.track_feed import TrackFeed
from workers.media import cmaf
from workers.media.errors import Unreadable

HEADER = init(AVC)
TRACK = Track(PICTURE, cmaf.header(HEADER))
LONG_DESCRIPTOR = ("mp4a", "esds", bytes(4) + b"\3" + b"\xff" * MIB)


def feed(*pieces: bytes) -> list[QueuedFragment]:
    track_feed = TrackFeed(TRACK)
    return [queued for piece in pieces for queued in track_feed.feed(piece)]


def moof(flags: int, samples: int, *fields: int, before: bytes = b"") -> bytes:
    times = (box("tfhd", pack(">IIII", 0x020018, 1, 40, 5)), box("tfdt", pack(">IQ", 0x01000000, 0)))
    run = box("trun", pack(f">II{len(fields)}I", flags, samples, *fields))
    return box("moof", before, box("traf", *times, run))


def nested(deep: int) -> bytes:
    return b"".join(pack(">I", size) + b"traf" for size in range(8 * deep, 0, -8))


FRAGMENTS: dict[str, tuple[bytes, ...]] = {
    "more samples than there is memory": (moof(0, 0xFFFFFFFF), box("mdat", b"media")),
    "more samples than media": (moof(0, 90_000), box("mdat", b"media")),
    "more samples than its box has": (moof(0x700, 2, 40, 5, 0), box("mdat", bytes(10))),
    "samples that are shown for no time": (moof(0x300, 5_000, *(0, 1) * 5_000), box("mdat", bytes(5_000))),
    "more media than there is": (moof(0x200, 1, 600), box("mdat", b"media")),
    "media before the fragment": (moof(0x001, 1, 0x80000000), box("mdat", b"media")),
    "a frame that FLV has no place for": (moof(0x200, 1, 9 * MIB), box("mdat", bytes(9 * MIB))),
    "boxes in boxes": (box("moof", nested(50_000)), box("mdat")),
    "many boxes": (moof(0, 1, before=box("free") * 400_000), box("mdat", b"media")),
    "a long description": (moof(0, 1, before=box("free", bytes(5 * MIB))), box("mdat", b"media")),
    "a box of no size": (b"\0\0\0\0mdat",),
    "a box of 64 bits": (b"\0\0\0\1mdat" + pack(">Q", 2**62),),
}
HEADERS: dict[str, bytes] = {
    "a descriptor without an end": init(LONG_DESCRIPTOR),
    "boxes in boxes": box("moov", nested(50_000)),
    "no timescale": HEADER.replace(pack(">6I", 0, 0, 0, 1000, 0, 0x55C40000), bytes(24)),
    "a configuration that is cut": init(("avc1", "avcC", b"\1")),
    "a box that is longer than all": HEADER[:-40],
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_that_is_to_waste_time_and_memory_is_refused(name: str) -> None:
    def refused() -> None:
        with pytest.raises(Unreadable):
            feed(*FRAGMENTS[name])

    bounded(refused)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_to_waste_time_is_refused(name: str) -> None:
    def refused() -> None:
        with pytest.raises(Unreadable):
            cmaf.header(HEADERS[name])

    bounded(refused)


async def test_fragments_are_read_ahead_up_to_a_number_of_bytes() -> None:
    """Each is 40 MiB: ten seconds of 33 Mbit/s. One that alone is larger than the limit would still go through."""
    big = QueuedFragment(TRACK, cmaf.CmafFragment(0, 1, bytes(40 * MIB), ()))
    stream = OpenStream([TRACK], silent=60.0)
    putting = [asyncio.create_task(stream.put(big)) for _ in range(4)]
    done, _ = await asyncio.wait(putting, timeout=0.2)
    assert len(done) == 2
    for _ in range(4):
        assert await stream.next() is big
    await asyncio.gather(*putting)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300) | spoilt(HEADER + fragment(0) + fragment(1)) | spoilt(init(AAC)))
@example(fragment(0)[:80])
def test_any_bytes_are_cmaf_or_not(data: bytes) -> None:
    with suppress(Unreadable):
        feed(data)
    with suppress(Unreadable):
        cmaf.header(data)
    with suppress(Unreadable):
        cmaf.fragment(data, box("mdat", bytes(100)))


async def test_what_waited_for_another_track_is_not_counted_once_it_was_sent() -> None:
    sound = Track(SOUND, cmaf.header(init(AAC)))
    order = TagInterleaver([TRACK, sound])
    assert not [tag for number in range(3) for tag in order.add(QueuedFragment(TRACK, fragment_of(number)))]
    assert order.buffered > 3 * 100_000
    assert len(list(order.add(QueuedFragment(sound, fragment_of(9))))) == 3
    assert order.buffered < 110_000


def fragment_of(number: int) -> cmaf.CmafFragment:
    """Second `number`, one frame of 100,000 bytes."""
    return cmaf.CmafFragment(number * SCALE, SCALE, bytes(100_000), (cmaf.CmafSample(100_000, SCALE, 0, True),))
