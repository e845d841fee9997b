"""The addresses that a capture takes for live streams of the built-in origin."""

from __future__ import annotations

import pytest

from workers.job.workflows.capture.capture import whole_recording

OWN = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("live", "whole"), [("master.m3u8", "master.m3u8"), ("manifest.mpd", "master.m3u8"), ("tracks/v0.m3u8", "tracks/v0.m3u8")]
)
def test_a_live_address_of_the_own_origin_becomes_that_of_the_recording(live: str, whole: str) -> None:
    assert whole_recording(f"{OWN}/origin/live/news/{live}", origin=OWN) == f"{OWN}/origin/live/news/archive/{whole}"


@pytest.mark.parametrize(
    "url",
    [
        f"{OWN}/origin/live/news/archive/master.m3u8",
        f"{OWN}/origin/live/news/state",
        f"{OWN}/origin/live/news/17/v0/init.mp4",
        f"{OWN}0/origin/live/news/master.m3u8",
        "http://127.0.0.2:8080/origin/live/news/master.m3u8",
        "https://origin.example/origin/live/news/master.m3u8",
    ],
)
def test_any_other_address_stays(url: str) -> None:
    assert whole_recording(url, origin=OWN) == url


def test_without_an_origin_every_address_stays() -> None:
    assert whole_recording(f"{OWN}/origin/live/news/master.m3u8", origin=None) == f"{OWN}/origin/live/news/master.m3u8"
