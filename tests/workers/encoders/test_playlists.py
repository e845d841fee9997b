"""Playlists that are sent to publishing points."""

from __future__ import annotations

import gc
from weakref import ref

from domain.configuration.encoder_settings import LONGEST_DVR
from workers.adapters.encoders.playlists import MediaPlaylist
from workers.adapters.encoders.tracks import Segment


class Media(bytearray):
    """Bytes that a weak reference can follow."""


def test_a_playlist_keeps_no_media() -> None:
    playlist = MediaPlaylist("v0", session=1, segment=2.0, window=60)
    data = [Media(b"media")]
    kept = ref(data[0])
    playlist.add(Segment("v0", 1, 1.79e9, 2.0, data))
    del data
    gc.collect()
    assert kept() is None


def test_a_playlist_reaches_back_two_hours_at_most() -> None:
    playlist = MediaPlaylist("v0", session=1, segment=60.0, window=86_400)
    for number in range(200):
        playlist.add(Segment("v0", number, 1.79e9 + 60 * number, 60.0, []))
    assert playlist.text().count(b"#EXTINF") * 60 == LONGEST_DVR
