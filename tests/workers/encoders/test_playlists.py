"""Playlists that are sent to publishing points: the built-in origin takes all that the encoder writes, also of long windows."""

from __future__ import annotations

import gc
from functools import partial
from weakref import ref

import pytest

from domain.channel.encoder_settings import LONGEST_DVR
from domain.channel.encoding import PointPlan
from tests.contract.encoder.conftest import client, receiver
from tests.projections.log.helpers import until
from tests.support.receiver import Receiver
from workers.adapters.encoders.hls_point import HlsPoint
from workers.adapters.encoders.playlists import MediaPlaylist
from workers.adapters.encoders.point import WINDOW, Sending
from workers.adapters.encoders.tracks import Segment, Track, TrackPlan
from workers.adapters.outbound_http import GuardedClient
from workers.media.cmaf import CmafHeader
from workers.origin.incoming_playlist import IncomingPlaylist, read_playlist
from workers.origin.limits import LONGEST_WINDOW, MOST_PLAYLIST

__all__ = ["client", "receiver"]
FIRST = 10**10
"""A number as large as those of half seconds since 1970."""
SESSION = 2**63 - 1


def segment(index: int, lasts: float, *, number: int | None = None) -> Segment:
    return Segment("v0", FIRST + index if number is None else number, 1.79e9 + index * lasts, lasts, [b"media"])


@pytest.mark.parametrize(("lasts", "window"), [(2.0, LONGEST_DVR), (0.5, LONGEST_DVR), (2.0, 86_400)])
def test_the_origin_takes_the_longest_playlists(lasts: float, window: int) -> None:
    playlist = MediaPlaylist("v0", session=SESSION, segment=lasts, window=window)
    count = round(LONGEST_DVR / lasts) + 3
    gone = [uri for index in range(count) for uri in playlist.add(segment(index, lasts))]
    text = playlist.text()
    assert text.count(b"#EXTINF") == count - len(gone) == round(LONGEST_DVR / lasts)
    incoming = read_playlist(text, "v0.m3u8")
    assert isinstance(incoming, IncomingPlaylist)
    newest = incoming.segments[-1]
    assert (newest.sequence, newest.path) == (FIRST + count - 1, f"v0-{SESSION}-{FIRST + count - 1}.m4s")
    assert (newest.init, newest.lasts, newest.at) == (f"v0-{SESSION}.mp4", lasts, 1.79e9 + (count - 1) * lasts)
    assert [segment.sequence for segment in incoming.segments] == list(range(FIRST + count - len(incoming.segments), FIRST + count))


def test_a_playlist_full_of_short_segments_and_gaps_is_within_the_bytes_that_the_origin_takes() -> None:
    playlist = MediaPlaylist("v0", session=SESSION, segment=0.5, window=LONGEST_DVR)
    for index in range(20_000):
        playlist.add(segment(index, 0.2, number=FIRST + 2 * index))
    assert len(playlist.text()) < MOST_PLAYLIST
    read_playlist(playlist.text(), "v0.m3u8")


class Media(list[bytes]):
    """Fragments that a weak reference can follow."""


def test_a_playlist_keeps_no_media() -> None:
    playlist = MediaPlaylist("v0", session=1, segment=2.0, window=60)
    data = Media([b"media"])
    reference = ref(data)
    playlist.add(Segment("v0", 1, 1.79e9, 2.0, data))
    del data
    gc.collect()
    assert reference() is None


def test_a_playlist_reaches_back_two_hours_at_most() -> None:
    playlist = MediaPlaylist("v0", session=1, segment=60.0, window=86_400)
    for number in range(200):
        playlist.add(segment(number, 60.0))
    assert playlist.text().count(b"#EXTINF") * 60 == LONGEST_DVR


async def test_a_window_is_told_as_far_as_the_origin_takes_it_and_the_newest_segments_are_listed(
    client: GuardedClient, receiver: Receiver
) -> None:
    """The built-in origin, which has a token, makes the window itself."""
    own = receiver.point("own")
    sending = Sending(
        7, lambda: True, lambda url: {"Authorization": "Bearer a"} if url.startswith(own) else {}, 20.0, 7_200, 10 * LONGEST_WINDOW
    )
    track = Track(TrackPlan("v0", 1000), CmafHeader(b"header", 1000, "avc1.42c01e", b""))
    for name, listed in (("own", 3), ("other", 5)):
        point = HlsPoint(PointPlan(0, 0, receiver.point(name)), sending, client=client)
        point.begin([track])
        for index in range(5):
            point.take_segment(track, segment(index, 20.0))
            last = f"-{FIRST + index}.m4s\n".encode()
            await until(partial(shown, receiver, f"/{name}/v0.m3u8", last))
        await point.finish(final=True)
        assert receiver.file(f"/{name}/v0.m3u8").count(b"#EXTINF") == listed
        assert {request.headers[WINDOW] for request in receiver.taken} == {str(LONGEST_WINDOW)}


def shown(receiver: Receiver, playlist: str, last: bytes) -> bool:
    return receiver.has(playlist) and receiver.file(playlist).endswith(last)
