"""A publishing point of HLS in front of a real server, without an encode."""

from __future__ import annotations

import asyncio

from domain.channel.encoding import PointPlan
from tests.contract.encoder.conftest import client, receiver
from tests.projections.log.helpers import until
from tests.support.receiver import Receiver
from workers.adapters.encoders.hls_point import HlsPoint
from workers.adapters.encoders.point import Sending
from workers.adapters.encoders.tracks import Segment, Track, TrackPlan
from workers.adapters.outbound_http import GuardedClient
from workers.media.cmaf import CmafHeader

__all__ = ["client", "receiver"]


async def test_the_end_is_told_again_where_the_point_did_not_take_it_at_once(client: GuardedClient, receiver: Receiver) -> None:
    sending = Sending(7, lambda: True, lambda _: {}, segment=1.0, window=60.0)
    point = HlsPoint(PointPlan(0, 0, receiver.point("one")), sending, client=client)
    track = Track(TrackPlan("v0", 1000), CmafHeader(b"header", 1000, "avc1.42c01e", b""))
    point.begin([track])
    point.take_segment(track, Segment("v0", 1, 1_000.0, 1.0, [b"media"]))
    await until(lambda: receiver.has("/one/master.m3u8"))
    receiver.how["one"] = "503"
    ending = asyncio.create_task(point.finish(final=True))
    await until(lambda: point.record.last_error)
    del receiver.how["one"]
    await ending
    assert receiver.file("/one/v0.m3u8").endswith(b"v0-7-1.m4s\n#EXT-X-ENDLIST\n")
    assert point.record.connected
