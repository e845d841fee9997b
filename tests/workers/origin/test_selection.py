"""Parts of a stream that players select: by time, by the length of the live window, and by rendition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from domain.kernel.clock import iso
from domain.kernel.errors import Malformed
from tests.support.clock import HandClock
from tests.workers.origin.studio import Studio, Track, master_playlist
from workers.origin.playback import PlaybackView
from workers.origin.recordings import Points
from workers.origin.selection import selection

MPD = "{urn:mpeg:dash:schema:mpd:2011}"


@pytest.fixture(scope="module")
async def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a stream of 100 seconds: pictures of two bit rates, and sound."""
    studio = Studio(tmp_path_factory.mktemp("origin"), HandClock())
    high, low, sound = Track(studio, "v0"), Track(studio, "v1"), Track(studio, "a0")
    await studio.put("master.m3u8", master_playlist("v0", "v1"))
    for _ in range(100):
        await high.send(data=b"x" * 5000, window=20)
        await low.send(data=b"x" * 500)
        await sound.send(data=b"x" * 50)
        studio.clock.forward(seconds=1)
    return studio.root


@pytest.fixture
def studio(recorded: Path, clock: HandClock) -> Studio:
    clock.forward(seconds=100)
    return Studio(recorded, clock)


def begin(studio: Studio) -> datetime:
    """The time of day of the first picture."""
    [recording] = Points(studio.root).get("news").recordings()
    return datetime.fromtimestamp(recording.tracks["v0"].segments[0].at, UTC)


def view(parts: Any = None, **parameters: str) -> PlaybackView:
    return PlaybackView(archive=False, up="", selection=selection(parameters), parts=parts)


def numbers(playlist: str) -> list[int]:
    """The segments of a playlist by their place in the stream."""
    return [int(time) // 1000 for time in re.findall(r"^1/v0/(\d+)\.m4s", playlist, re.MULTILINE)]


async def test_a_part_between_two_times_is_complete(studio: Studio) -> None:
    start = begin(studio)
    times = {"vbegin": iso(start + timedelta(seconds=10)), "vend": iso(start + timedelta(seconds=30))}
    playlist = await studio.media("v0", view(**times))
    assert numbers(playlist) == list(range(10, 30))
    assert playlist.endswith("#EXT-X-ENDLIST\n")
    assert "#EXT-X-PLAYLIST-TYPE:VOD" in playlist
    assert "#EXT-X-MEDIA-SEQUENCE:10\n" in playlist


async def test_times_count_from_the_start_of_the_stream(studio: Studio) -> None:
    assert numbers(await studio.media("v0", view(vbegin="00:00:10", vend="00:00:12"))) == [10, 11]
    assert numbers(await studio.media("v0", view(vend="00:00:02"))) == [0, 1]


async def test_a_bound_inside_of_a_segment_takes_the_whole_segment_and_says_where_to_start(studio: Studio) -> None:
    playlist = await studio.media("v0", view(vbegin="00:00:10.400", vend="00:00:12.500"))
    assert numbers(playlist) == [10, 11, 12]
    assert "#EXT-X-START:TIME-OFFSET=0.400,PRECISE=YES" in playlist


async def test_dash_presents_exactly_the_part(studio: Studio) -> None:
    manifest = etree.fromstring(str(await studio.manifest(view(vbegin="00:00:10.400", vend="00:00:12.500"))).encode())
    assert (manifest.get("type"), manifest.get("mediaPresentationDuration")) == ("static", "PT2.100S")
    [period] = manifest.iter(f"{MPD}Period")
    template = next(period.iter(f"{MPD}SegmentTemplate"))
    offset = int(template.get("presentationTimeOffset", "")) / int(template.get("timescale", ""))
    first = next(template.iter(f"{MPD}S"))
    assert (period.get("start"), offset, first.get("t"), first.get("r")) == ("PT0.000000S", 10.4, "10000", "2")


async def test_a_start_over_grows_with_the_stream(studio: Studio) -> None:
    from_begin = view(vbegin="00:01:30")
    playlist = await studio.media("v0", from_begin)
    assert numbers(playlist) == list(range(90, 100))
    assert "#EXT-X-ENDLIST" not in playlist
    manifest = etree.fromstring(str(await studio.manifest(from_begin)).encode())
    assert manifest.get("type") == "dynamic"


async def test_an_end_that_is_ahead_is_waited_for(studio: Studio) -> None:
    ahead = view(vbegin="00:01:30", vend="00:01:45")
    assert "#EXT-X-ENDLIST" not in await studio.media("v0", ahead)
    studio.clock.forward(seconds=60)
    assert "#EXT-X-ENDLIST" in await studio.media("v0", ahead), "the encoder has stopped, and nothing more comes"


@pytest.mark.parametrize("times", [{"vbegin": "00:10:00"}, {"vend": "2001-01-01T00:00:00Z"}])
async def test_a_part_without_a_segment_does_not_exist(studio: Studio, times: Mapping[str, str]) -> None:
    assert await studio.media("v0", view(**times)) == ""
    assert await studio.manifest(view(**times)) is None


async def test_the_length_of_the_window_is_the_requested_one(studio: Studio) -> None:
    assert len(numbers(await studio.media("v0", view()))) == 20
    assert len(numbers(await studio.media("v0", view(dvr_window_length="5")))) == 5
    assert len(numbers(await studio.media("v0", view(dvr_window_length="50")))) == 50
    assert len(numbers(await studio.media("v0", view(dvr_window_length="999999999")))) == 100


async def test_only_public_parts_are_played(studio: Studio) -> None:
    start = begin(studio).timestamp()
    public = ((start + 5, start + 10), (start + 70, inf))
    assert numbers(await studio.media("v0", view(public, dvr_window_length="50"))) == list(range(70, 100))
    assert numbers(await studio.media("v0", view(public, dvr_window_length="5"))) == list(range(95, 100))
    assert numbers(await studio.media("v0", view(public, vbegin="00:00:10"))) == list(range(80, 100)), "from the present part"
    inside = {"vbegin": iso(begin(studio) + timedelta(seconds=6)), "vend": iso(begin(studio) + timedelta(seconds=60))}
    assert numbers(await studio.media("v0", view(public, **inside))) == [6, 7, 8, 9]
    between = {"vbegin": iso(begin(studio) + timedelta(seconds=20)), "vend": iso(begin(studio) + timedelta(seconds=60))}
    assert await studio.media("v0", view(public, **between)) == ""


@pytest.mark.parametrize(
    ("parameters", "tracks"),
    [
        ({}, {"v0", "v1", "a0"}),
        ({"filter": 'type=="audio"'}, {"a0"}),
        ({"filter": 'type != "audio"'}, {"v0", "v1"}),
        ({"filter": 'type=="audio"||systemBitrate<20000'}, {"a0", "v1"}),
        ({"filter": 'type=="video"&&systemBitrate>=20000'}, {"v0"}),
        ({"max_bitrate": "20000"}, {"v1", "a0"}),
        ({"min_bitrate": "20000"}, {"v0", "a0"}),
        ({"max_bitrate": "1"}, {"v1", "a0"}),
        ({"min_bitrate": "999999999"}, {"v0", "a0"}),
    ],
)
async def test_renditions_are_selected_by_media_and_bit_rate(
    studio: Studio, parameters: Mapping[str, str], tracks: set[str]
) -> None:
    master = str(await studio.master(view(**parameters)))
    assert set(re.findall(r"tracks/(\w+)\.m3u8", master)) == tracks
    assert set(re.findall(r'Representation id="(\w+)"', str(await studio.manifest(view(**parameters))))) == tracks


async def test_a_filter_that_accepts_nothing_finds_nothing(studio: Studio) -> None:
    assert await studio.master(view(filter="systemBitrate>999999999")) is None


async def test_the_selection_is_in_the_addresses_of_playlists_and_not_of_segments(studio: Studio) -> None:
    part = selection({"vbegin": "00:00:10", "filter": 'type=="video"'})
    asked = PlaybackView(archive=False, up="", query="?token=t", selection=part)
    master = str(await studio.master(asked))
    assert "tracks/v0.m3u8?token=t&vbegin=00%3A00%3A10&filter=type%3D%3D%22video%22" in master
    assert "1/v0/10000.m4s?token=t\n" in await studio.media("v0", asked)


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({"vbegin": "yesterday"}, ["vbegin"]),
        ({"vbegin": "00:00:10", "vend": "00:00:05"}, ["vend"]),
        ({"dvr_window_length": "0"}, ["dvr_window_length"]),
        ({"dvr_window_length": "-5", "max_bitrate": "1e6"}, ["dvr_window_length", "max_bitrate"]),
        ({"min_bitrate": "2", "max_bitrate": "1"}, ["min_bitrate"]),
        *(
            ({"filter": text}, ["filter"])
            for text in (
                "",
                "type",
                'type=="text"',
                "systemBitrate<fast",
                'language=="en"',
                "1==1",
                "a&&",
                "&&".join(["systemBitrate>1"] * 17),
            )
        ),
    ],
)
def test_what_cannot_be_selected_is_refused(parameters: Mapping[str, str], fields: list[str]) -> None:
    with pytest.raises(Malformed) as refusal:
        selection(parameters)
    assert [error.field for error in refusal.value.errors] == fields
