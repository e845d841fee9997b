"""The order of tags of RTMP, and publishing points of RTMP whose tracks or servers stop, without an encode."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from domain.channel.encoding import PointPlan
from domain.event.values import AudioInput
from tests.contract.encoder.conftest import client
from tests.projections.log.helpers import until
from tests.support.rtmp_receiver import RtmpReceiver, rtmp_receiver
from workers.adapters.encoders.flv_tags import _OVERHEAD, LATE, MOST_BUFFERED, Tag, TagInterleaver
from workers.adapters.encoders.fragment_queue import QueuedFragment
from workers.adapters.encoders.point import Sending
from workers.adapters.encoders.rtmp import AUDIO, VIDEO
from workers.adapters.encoders.rtmp_point import RtmpPoint
from workers.adapters.encoders.tracks import Track, TrackPlan
from workers.adapters.outbound_http import GuardedClient
from workers.media.cmaf import CmafFragment, CmafHeader, CmafSample

__all__ = ["client"]
PICTURE = Track(TrackPlan("v0", 1000), CmafHeader(b"", 1000, "avc1.42c01e", b"v"))
SOUND = Track(TrackPlan("a0", 1000, audio=AudioInput(id="0")), CmafHeader(b"", 1000, "mp4a.40.2", b"a"))
BEGIN = 1_790_000_000
SIZE = 100


def half_second(track: Track, number: int, *, key: bool = True, size: int = SIZE) -> QueuedFragment:
    """The fragment with this number since `BEGIN`: five samples."""
    samples = [CmafSample(size, 100, 0, key and each == 0) for each in range(5)]
    return QueuedFragment(track, CmafFragment(BEGIN * 1000 + number * 500, 500, bytes(5 * size), samples))


def sent(order: TagInterleaver, *fragments: QueuedFragment) -> list[Tag]:
    return [tag for each in fragments for tag in order.add(each)]


def times(tags: list[Tag], kind: int) -> list[int]:
    return [time for time, each, _ in tags if each == kind]


def both(numbers: range) -> list[QueuedFragment]:
    return [half_second(track, number) for number in numbers for track in (PICTURE, SOUND)]


@pytest.mark.parametrize(("lasting", "stopping"), [(PICTURE, SOUND), (SOUND, PICTURE)])
def test_a_track_goes_on_without_the_other_one_which_is_in_sync_when_it_is_back(lasting: Track, stopping: Track) -> None:
    order = TagInterleaver([PICTURE, SOUND], late=LATE)
    tags = sent(order, *both(range(8)))
    for number in range(8, 128):
        tags += sent(order, half_second(lasting, number))
        assert order.buffered <= (LATE + 0.5) * 10 * (SIZE + 5 + _OVERHEAD)
    assert tags[-1][0] > 63_000
    tags += sent(order, *both(range(128, 140)))
    assert [time for time, _, _ in tags] == sorted(time for time, _, _ in tags)
    kinds = {PICTURE.name: VIDEO, SOUND.name: AUDIO}
    assert times(tags, kinds[lasting.name]) == list(range(0, tags[-1][0] + 1, 100)), "nothing of it is missing"
    back = [time for time in times(tags, kinds[stopping.name]) if time >= 4_000]
    assert back == list(range(back[0], tags[-1][0] + 1, 100)), "with the times that it has"
    assert 64_000 <= back[0] <= 64_500


def test_picture_that_comes_too_late_goes_on_with_a_key_frame() -> None:
    order = TagInterleaver([PICTURE, SOUND], late=LATE)
    sent(order, *both(range(4)), *(half_second(SOUND, number) for number in range(4, 16)))
    late = [half_second(PICTURE, number, key=number % 4 == 0) for number in range(9, 24)]
    tags = sent(order, *late, *(half_second(SOUND, number) for number in range(16, 24)))
    assert times(tags, VIDEO)[0] == 8_000
    assert next(data for _, kind, data in tags if kind == VIDEO)[0] == 0x17


def test_what_waits_is_bounded_in_bytes() -> None:
    order = TagInterleaver([PICTURE, SOUND])
    tags: list[Tag] = []
    for number in range(4 * MOST_BUFFERED // (5 * 1_000_000)):
        tags += [(time, kind, b"") for time, kind, _ in sent(order, half_second(PICTURE, number, size=1_000_000))]
        assert order.buffered <= MOST_BUFFERED
    assert times(tags, VIDEO) == list(range(0, len(tags) * 100, 100))
    assert tags


@pytest.fixture
async def server() -> AsyncIterator[RtmpReceiver]:
    async with rtmp_receiver() as made:
        yield made


async def test_a_closed_connection_is_noticed_and_the_next_one_needs_no_sound(client: GuardedClient, server: RtmpReceiver) -> None:
    sending = Sending(7, lambda: True, lambda _: {}, segment=2.0, window=60.0)
    point = RtmpPoint(PointPlan(0, 0, f"{server.url}/news"), sending, client=client)
    point.begin([PICTURE, SOUND])
    try:
        for each in both(range(4)):
            point.take_fragment(each.track, each.fragment)
        await until(lambda: point.record.connected)
        server.drop()
        await until(lambda: not point.record.connected)
        assert point.record.last_error == "It closed the connection."
        for number in range(4, 16):
            point.take_fragment(PICTURE, half_second(PICTURE, number).fragment)
        await until(lambda: len(server.taken) > 1 and len(server.taken[-1].media(VIDEO)) > 40)
        assert point.record.connected
        assert point.record.reconnects == 1
    finally:
        await point.abort()
