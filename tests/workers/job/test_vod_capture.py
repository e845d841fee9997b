"""The workflow `vod_capture` in a real step process, from real origins, proved by decoding its output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.origin import Origin
from tests.support.packages import published, run
from tests.support.sources.numbered_frames import numbers, probed
from tests.workers.job.capturing import Studio, studio
from tests.workers.job.streamed import SYNC, heard, moment, playlist
from workers.job.protocol import StepFailure

__all__ = ["studio"]


async def test_hls_is_cut_to_the_frame(studio: Studio) -> None:
    async with Origin(studio.files("ts") | {"ts/i.m3u8": playlist(range(8))}) as origin:
        made = await studio.captured([f"{origin.url}/ts/i.m3u8"], moment(1.4), moment(3.2), frame_accurate=True)
    assert numbers(made) == list(range(35, 80))
    assert [path for path in origin.asked if path.endswith(".ts")] == [f"ts/s{number}.ts" for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(("name", "extension", "init"), [("ts", "ts", None), ("fmp4", "m4s", "init.mp4")])
async def test_a_copy_begins_at_the_key_frame_before(studio: Studio, name: str, extension: str, init: str | None) -> None:
    listed = playlist(range(8), extension=extension, init=init)
    async with Origin(studio.files(name) | {f"{name}/i.m3u8": listed}) as origin:
        made = await studio.captured([f"{origin.url}/{name}/i.m3u8"], moment(1.4), moment(4))
    assert numbers(made)[:75] == list(range(25, 100))
    assert set(numbers(made)[75:]) <= {100, 101, 102, 103}, "the few that the last ones were predicted from"
    assert studio.made["startTime"] == "2026-01-01T12:00:01.000Z"
    assert studio.made["duration"] == 3.0
    kinds = {stream["codec_type"]: float(stream["duration"]) for stream in probed(made)["streams"]}
    assert kinds == {"video": pytest.approx(3, abs=0.09), "audio": pytest.approx(3, abs=0.05)}


async def test_times_may_count_from_the_start_and_time_stamps_be_kept(studio: Studio) -> None:
    listed = playlist(range(8), began=None)
    async with Origin(studio.files("ts") | {"ts/i.m3u8": listed}) as origin:
        made = await studio.captured([f"{origin.url}/ts/i.m3u8"], "00:00:02", "00:00:03.000", copy_ts=True, frame_accurate=True)
    assert numbers(made) == list(range(50, 75))
    packets = probed(made, "-select_streams", "v:0", "-show_entries", "packet=pts_time")["packets"]
    assert min(float(packet["pts_time"]) for packet in packets) == pytest.approx(2 + 1.48, abs=0.02)
    assert studio.made["startTime"] is None


async def test_the_highest_rendition_with_its_audio_is_taken(studio: Studio) -> None:
    """The segments are byte ranges of one file, and the initialization section is a range too."""
    files = studio.files("dash")
    init, parts = files["dash/init-stream0.m4s"], [files[f"dash/chunk-stream0-{n:05d}.m4s"] for n in range(1, 9)]
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", f'#EXT-X-MAP:URI="all.mp4",BYTERANGE="{len(init)}@0"']
    for number, part in enumerate(parts):
        place = f"@{len(init)}" if number == 0 else ""
        lines += ["#EXTINF:1,", f"#EXT-X-BYTERANGE:{len(part)}{place}", "all.mp4"]
    audio = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", '#EXT-X-MAP:URI="../dash/init-stream1.m4s"']
    for number, lasts in enumerate([0.928798, *[0.998458] * 5, *[1.021678] * 2], 1):
        audio += [f"#EXTINF:{lasts},", f"../dash/chunk-stream1-{number:05d}.m4s"]
    master = [
        "#EXTM3U",
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="de",URI="a/none.m3u8"',
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",DEFAULT=YES,URI="a/en.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=64x48,AUDIO="a"',
        "low.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=700000,RESOLUTION=128x96,AUDIO="a",CODECS="avc1.64000a,mp4a.40.2"',
        "v/high.m3u8",
    ]
    files |= {"master.m3u8": "\n".join(master).encode(), "v/all.mp4": init + b"".join(parts)}
    files |= {"v/high.m3u8": "\n".join([*lines, "#EXT-X-ENDLIST"]).encode()}
    files |= {"a/en.m3u8": "\n".join([*audio, "#EXT-X-ENDLIST"]).encode()}
    async with Origin(files, moved={"redirected": "/master.m3u8"}) as origin:
        made = await studio.captured([f"{origin.url}/redirected"], "00:00:01.200", "00:00:05", frame_accurate=True)
    assert numbers(made) == list(range(30, 125))
    assert heard(made) == pytest.approx([0.8, 1.8, 2.8], abs=SYNC)
    assert float(probed(made)["format"]["duration"]) == pytest.approx(3.8, abs=0.05)


async def test_two_origins_with_different_gaps_give_one_whole_file(studio: Studio) -> None:
    """The first origin does not list one segment, marks another as missing, and sends half of a third; the second lacks others."""
    files = studio.files("ts") | {"ts/i.m3u8": playlist([0, 1, 3, 4, 5, 6, 7], tags={4: "#EXT-X-GAP"})}
    other = studio.files("ts") | {"ts/i.m3u8": playlist(range(1, 7))}
    files["ts/i.m3u8"] = playlist(range(8), tags={2: "#EXT-X-GAP"})
    async with Origin(files, cut={"ts/s4.ts": 2000}) as first, Origin(other, statuses={"ts/s6.ts": 404}) as second:
        urls = [f"{first.url}/ts/i.m3u8", f"{second.url}/ts/i.m3u8"]
        made = await studio.captured(urls, moment(0), moment(8), frame_accurate=True)
        assert numbers(made) == list(range(200))
        copied = await studio.captured(urls, moment(0), moment(8))
    assert numbers(copied) == list(range(200))
    assert heard(made) == pytest.approx(range(1, 8), abs=SYNC)
    assert heard(copied) == pytest.approx(range(1, 8), abs=SYNC)
    assert studio.gaps
    assert all(gap["filledBy"] for gap in studio.gaps)
    assert "taken from source" in studio.log_text


@pytest.mark.parametrize("accurate", [True, False])
@pytest.mark.parametrize(("name", "extension", "init"), [("ts", "ts", None), ("fmp4", "m4s", "init.mp4")])
async def test_segments_that_no_source_has_are_reported_as_missing(
    studio: Studio, name: str, extension: str, init: str | None, accurate: bool
) -> None:
    listed = playlist(range(8), extension=extension, init=init, tags={3: "#EXT-X-GAP"})
    async with Origin(studio.files(name) | {f"{name}/i.m3u8": listed}) as origin:
        made = await studio.captured([f"{origin.url}/{name}/i.m3u8"], moment(2), moment(5), frame_accurate=accurate)
    assert numbers(made)[:50] == [*range(50, 75), *range(100, 125)]
    assert studio.made["duration"] == pytest.approx(2.0, abs=0.03)
    assert heard(made) == [], "the second with the tone is missing"
    gap = {"track": "main", "from": "2026-01-01T12:00:03.000Z", "to": "2026-01-01T12:00:04.000Z", "filledBy": None}
    assert studio.gaps == [gap]
    assert "from 2026-01-01T12:00:03.000Z to 2026-01-01T12:00:04.000Z: no source has it" in studio.log_text


@pytest.mark.parametrize("accurate", [True, False])
async def test_time_stamps_that_are_kept_keep_the_gap(studio: Studio, accurate: bool) -> None:
    listed = playlist(range(1, 8), tags={3: "#EXT-X-GAP"})
    async with Origin(studio.files("ts") | {"ts/i.m3u8": listed}) as origin:
        url = f"{origin.url}/ts/i.m3u8"
        made = await studio.captured([url], moment(0.5), moment(5), copy_ts=True, frame_accurate=accurate)
    packets = probed(made, "-select_streams", "v:0", "-show_entries", "packet=pts_time")["packets"]
    times = sorted(float(packet["pts_time"]) for packet in packets)[:75]
    expected = [number / 25 + 1.48 for number in (*range(25, 75), *range(100, 125))]
    assert times == pytest.approx(expected, abs=0.02)


async def test_time_stamps_that_begin_again_are_counted_on(studio: Studio) -> None:
    """The time stamps begin again within the third segment."""
    async with Origin(studio.files("wrapped") | {"wrapped/i.m3u8": playlist(range(8), tags={6: "#EXT-X-GAP"})}) as origin:
        url = f"{origin.url}/wrapped/i.m3u8"
        made = await studio.captured([url], moment(1.4), moment(5.2), frame_accurate=True)
        assert numbers(made) == list(range(35, 130))
        made = await studio.captured([url], moment(3.4), moment(8), frame_accurate=True)
    assert numbers(made) == [*range(85, 150), *range(175, 200)]
    assert heard(made)[:2] == pytest.approx([0.6, 1.6], abs=SYNC)
    assert heard(made)[2:] == pytest.approx([2.54, 2.6], abs=SYNC), "the last audio before a gap is in the segment that is missing"


@pytest.mark.parametrize("accurate", [True, False])
@pytest.mark.parametrize("name", ["other", "larger"])
async def test_sources_of_other_encoders_fill_a_gap(studio: Studio, name: str, accurate: bool) -> None:
    """The segments of the sources begin at different moments: the first source is left where a segment of the other begins."""
    other = [f"#EXT-X-PROGRAM-DATE-TIME:{moment(0)}", "#EXTINF:1.52,", "s0.ts"]
    for number in range(1, 7):
        other += [f"#EXT-X-PROGRAM-DATE-TIME:{moment(number + 0.52)}", "#EXTINF:1,", f"s{number}.ts"]
    listed = "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:1", *other, "#EXT-X-ENDLIST"]).encode()
    first_files = studio.files("ts") | {"ts/i.m3u8": playlist(range(8), tags={3: "#EXT-X-GAP"})}
    async with Origin(first_files) as first, Origin(studio.files(name) | {f"{name}/i.m3u8": listed}) as second:
        urls = [f"{first.url}/ts/i.m3u8", f"{second.url}/{name}/i.m3u8"]
        made = await studio.captured(urls, moment(1), moment(6), frame_accurate=accurate)
    shown = numbers(made)
    assert len(set(range(25, 150)) - set(shown)) <= 3
    assert len(shown) - len(set(shown)) <= 3
    assert heard(made)[-4:] == pytest.approx([1, 2, 3, 4], abs=SYNC)


async def test_what_was_captured_is_packaged(studio: Studio) -> None:
    """All steps run, as in the engine; a query of the source's URL appears in none of the results."""
    async with Origin(studio.files("ts") | {"ts/i.m3u8": playlist(range(8), tags={5: "#EXT-X-GAP"})}) as origin:
        source = f"{origin.url}/ts/i.m3u8?token=S3cret"
        given: dict[str, Any] = {"sources": [source], "start": moment(2), "end": moment(4), "frame_accurate": True, "publish": True}
        results = await run(studio.hosts, studio.root, "vod_capture", content_id="match", **given)
    assert not isinstance(results, StepFailure), results
    assert results["join"]["startTime"] == "2026-01-01T12:00:02.000Z"
    assert "S3cret" not in str(results)
    assert {"match.mp4", "match.ism", "metadata.json", "clear/master.m3u8", "clear/manifest.mpd"} <= published(studio.root, "match")
    film = studio.root / "match/match.mp4"
    assert numbers(film) == list(range(50, 100))
    boxes = film.read_bytes()
    assert boxes.find(b"moov") < boxes.find(b"mdat"), "a player begins before it has all of it"
    described = json.loads((studio.root / "match/metadata.json").read_text())
    assert (described["contentId"], described["duration"]) == ("match", 2.0)
    assert described["startTime"] == "2026-01-01T12:00:02.000Z"
    assert described["files"][0] == {"name": "match.mp4", "size": film.stat().st_size}
