"""The workflows of assets in a real step host with the real ffmpeg, proved by decoding their output."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.support.sources.numbered_frames import film, numbers, probed, tool
from tests.support.step_hosts import Listener, order
from tests.workers.job.sources import HDR, ffmpeg
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

TONE = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4")
H264 = ("-c:v", "libx264", "-g", "30", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p")
TRACKS = (
    *("-map", "0:v", "-map", "0:v", "-map", "1:a", "-map", "1:a", "-s:v:1", "64x48", "-c:a", "aac", "-shortest"),
    *("-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu"),
)


SECRET = "not for the public"
NOTES = f""";FFMETADATA1
title={SECRET}
comment={SECRET}
location=+52.5200+013.4050/
[CHAPTER]
TIMEBASE=1/1000
START=0
END=4000
title={SECRET}
"""


def noted(path: Path) -> None:
    """Make a film with all notes that cameras and editors write, in the file, in its tracks and in separate tracks."""
    notes = path.with_name("notes.txt")
    notes.write_text(NOTES)
    tags = ("-metadata:s:v", f"handler_name={SECRET}", "-metadata:s:a", f"title={SECRET}", "-metadata:s:a", "language=ger")
    kept_tags = (
        "-movflags",
        "use_metadata_tags",
        "-metadata",
        f"com.apple.quicktime.description={SECRET}",
        "-timecode",
        "10:00:00:00",
    )
    inputs = (*TONE, "-i", str(notes))
    film(path, "-map_metadata", "2", "-map", "0", "-map", "1", *H264, "-c:a", "aac", *tags, *kept_tags, inputs=inputs)
    notes.unlink()


def damaged(path: Path) -> None:
    """Make a film whose second and third second cannot be decoded."""
    film(path, *H264, "-g", "25", "-bf", "0")
    packets = probed(path, "-select_streams", "v", "-show_entries", "packet=pos,size")["packets"]
    whole = bytearray(path.read_bytes())
    for packet in packets[25:75]:
        at, size = int(packet["pos"]), int(packet["size"])
        whole[at : at + size] = bytes(size)
    path.write_bytes(whole)


COLOURS = "color=c=0xc02020:s=128x96:r=25:d=1"
"""A red of standard dynamic range."""
PQ = "scale=in_range=tv:out_primaries=bt2020:out_transfer=smpte2084:out_color_matrix=bt2020nc,format=yuv420p10le"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("assets") / "media"
    folder = root / "film"
    folder.mkdir(parents=True)
    film(folder / "film.mp4", *TRACKS, *H264, inputs=TONE)
    film(folder / "film.ts", *H264)
    film(folder / "film.mkv", *H264)
    film(folder / "film.avi", "-c:v", "mpeg4", "-g", "30", "-q:v", "2")
    film(folder / "long.ts", *H264, fps="3")
    film(folder / "long.mp4", *H264, fps="3")
    film(folder / "one-key.mp4", *H264, "-g", "1000", fps="3")
    film(folder / "odd.mp4", "-vf", "crop=127:95:0:0", "-c:v", "libx264", "-pix_fmt", "yuv444p", frames=25)
    film(folder / "wide.mp4", "-vf", "setsar=4/3", *H264, frames=25)
    turned = ("-display_rotation", "90", "-i", str(folder / "wide.mp4"), "-c", "copy", str(folder / "turned.mp4"))
    ffmpeg(*turned)
    ffmpeg("-f", "lavfi", "-i", COLOURS, "-vf", PQ, "-c:v", "libx265", "-x265-params", HDR, str(folder / "hdr.mp4"))
    film(folder / "ntsc.mp4", *H264, fps="30000/1001")
    film(folder / "-wide.nut", "-vf", "scale=20000:16", "-c:v", "ffv1", frames=1)
    noted(folder / "noted.mov")
    damaged(folder / "damaged.mp4")
    film(folder / "sound.mp4", "-map", "1:a", "-c:a", "aac", inputs=TONE, frames=1)
    whole = (folder / "film.mp4").read_bytes()
    (folder / "half.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "playlist.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile://{folder}/film.mp4\n#EXT-X-ENDLIST\n"
    )
    (folder / "concat.mp4").write_text(f"ffconcat version 1.0\nfile {folder}/film.mp4\n")
    (root.parent / "secret.mp4").write_bytes(whole)
    (folder / "out.mp4").symlink_to(root.parent / "secret.mp4")
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def ended(
    hosts: StepProcessPool, workflow: str, *, listener: Listener | None = None, **wanted: Any
) -> Finished | StepFailure:
    given = {"source": "film.mp4", "name": f"assets/{workflow}", **wanted}
    return await hosts.run(order("make", workflow=workflow, **given), listener or Listener())


STILL = {"start": "00:00:00.480", "end": "00:00:00.900", "playback_speed": 0.0}


def colour(path: Path) -> tuple[int, int, int]:
    """Return the colour in the middle of a picture."""
    cut = ("-vf", "scale=in_color_matrix=bt601,format=rgb24,crop=1:1", "-frames:v", "1", "-f", "rawvideo", "-")
    raw = subprocess.run([tool("ffmpeg"), "-v", "error", "-i", str(path), *cut], stdout=subprocess.PIPE, check=True).stdout
    return raw[0], raw[1], raw[2]


async def made(hosts: StepProcessPool, root: Path, workflow: str, **wanted: Any) -> Path:
    """Run a workflow, and return the file that its step has made, in its workspace."""
    result = await ended(hosts, workflow, **wanted)
    assert isinstance(result, Finished), result
    [output] = result.outputs
    assert output.name == f"film/assets/{workflow}"
    assert str(root) not in str(result)
    return root / ".jobs/17/2/1" / output.path


@pytest.mark.parametrize(
    ("time", "number"), [("00:00:00", 0), ("00:00:00.039", 0), ("00:00:00.040", 1), ("00:00:01.500", 37), ("00:00:03.999", 99)]
)
async def test_an_image_is_the_frame_that_is_shown_at_its_time(hosts: StepProcessPool, root: Path, time: str, number: int) -> None:
    assert numbers(await made(hosts, root, "asset_image", time=time)) == [number]


@pytest.mark.parametrize("number", [1, 29, 30, 31, 73])
async def test_frames_of_a_rate_that_no_clock_divides_are_found(hosts: StepProcessPool, root: Path, number: int) -> None:
    time = f"00:00:{(number + 0.5) * 1001 / 30000:06.3f}"
    assert numbers(await made(hosts, root, "asset_image", source="ntsc.mp4", time=time)) == [number]


@pytest.mark.parametrize("source", ["film.ts", "film.mkv", "film.avi"])
@pytest.mark.parametrize("number", [0, 31, 99])
async def test_frames_are_found_in_other_containers(hosts: StepProcessPool, root: Path, source: str, number: int) -> None:
    """Some sources have a first time stamp other than 0, or a last frame without a duration."""
    time = f"00:00:{number / 25 + 0.02:06.3f}"
    assert numbers(await made(hosts, root, "asset_image", source=source, time=time)) == [number]
    clip = await made(hosts, root, "asset_video", source=source, start="00:00:03.000", end="00:00:04.000", frame_accurate=True)
    assert numbers(clip) == list(range(75, 100))


@pytest.mark.parametrize(("workflow", "times"), [("asset_image", {"time": "00:00:00.480"}), ("asset_gif", STILL)])
@pytest.mark.parametrize(("source", "size", "turned"), [("wide.mp4", (171, 96), ""), ("turned.mp4", (96, 171), "transpose=clock,")])
async def test_a_still_has_the_shape_that_is_shown(
    hosts: StepProcessPool, root: Path, workflow: str, times: dict[str, Any], source: str, size: tuple[int, int], turned: str
) -> None:
    picture = await made(hosts, root, workflow, source=source, **times)
    [stream] = probed(picture)["streams"]
    assert (stream["width"], stream["height"]) == pytest.approx(size, abs=1)
    assert stream.get("sample_aspect_ratio", "1:1") == "1:1"
    assert numbers(picture, turned=turned) == [12]


@pytest.mark.parametrize(("workflow", "times"), [("asset_image", {"time": "00:00:00.480"}), ("asset_gif", STILL)])
async def test_a_still_of_hdr_has_its_colours(hosts: StepProcessPool, root: Path, workflow: str, times: dict[str, Any]) -> None:
    picture = await made(hosts, root, workflow, source="hdr.mp4", **times)
    red, green, blue = colour(picture)
    assert red > 100, "not dark"
    assert max(green, blue) < red / 2.5, "not grey"


async def test_an_accurate_clip_has_the_frames_of_its_times_and_all_tracks(hosts: StepProcessPool, root: Path) -> None:
    times = {"start": "00:00:01.020", "end": "00:00:02.000"}
    clip = await made(hosts, root, "asset_video", **times, frame_accurate=True)
    assert numbers(clip) == list(range(25, 50))
    assert numbers(clip, stream="0:v:1") == list(range(25, 50))
    kinds = [stream["codec_type"] for stream in probed(clip)["streams"]]
    assert kinds == ["video", "video", "audio", "audio"]
    assert float(probed(clip)["format"]["duration"]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("source", ["long.ts", "long.mp4", "one-key.mp4"])
async def test_the_middle_of_a_long_accurate_clip_is_not_read(hosts: StepProcessPool, root: Path, source: str) -> None:
    """The source has a single key frame, so both ends are read from it."""
    times = {"start": "00:00:05.700", "end": "00:00:32.000"}
    shown = numbers(await made(hosts, root, "asset_video", source=source, **times, frame_accurate=True))
    assert [number for number, _ in groupby(shown)] == list(range(17, 96)), "each is repeated, since it is there for long"


async def test_a_copied_clip_begins_at_the_key_frame_before_its_start(hosts: StepProcessPool, root: Path) -> None:
    clip = await made(hosts, root, "asset_video", start="00:00:01.480", end="00:00:02.000", mezzanine=True)
    shown = numbers(clip)
    assert shown[0] == 30
    assert shown[:20] == list(range(30, 50))
    assert shown[-1] <= 51, "the two frames that others were predicted from"
    streams = probed(clip)["streams"]
    assert [(stream["codec_type"], stream["codec_name"]) for stream in streams] == [("video", "h264"), ("audio", "aac")]
    assert streams[0]["width"] == 128, "the highest"


@pytest.mark.parametrize("accurate", [True, False])
@pytest.mark.parametrize(
    ("expression", "tracks"),
    [
        ('type=="video" && height<=48', [("video", 48, None)]),
        ('type=="video" && height>48 || language=="deu"', [("video", 96, None), ("audio", None, "deu")]),
        ('!(type=="video") && bitrate>1', [("audio", None, "eng"), ("audio", None, "deu")]),
    ],
)
async def test_a_filter_chooses_the_tracks(
    hosts: StepProcessPool, root: Path, accurate: bool, expression: str, tracks: list[tuple[str, int | None, str | None]]
) -> None:
    times = {"start": "00:00:01.000", "end": "00:00:02.000"}
    clip = await made(hosts, root, "asset_video", **times, frame_accurate=accurate, filter=expression)
    streams = probed(clip)["streams"]
    assert [(stream["codec_type"], stream.get("height")) for stream in streams] == [(kind, height) for kind, height, _ in tracks]
    languages = [stream["tags"]["language"] for stream in streams if stream["codec_type"] == "audio"]
    assert languages == [language for kind, _, language in tracks if kind == "audio"]


async def test_a_filter_comes_before_the_choice_of_the_highest_and_lets_something_pass(hosts: StepProcessPool, root: Path) -> None:
    given: dict[str, Any] = {"start": "00:00:01.000", "end": "00:00:02.000", "mezzanine": True, "frame_accurate": True}
    clip = await made(hosts, root, "asset_video", **given, filter='type=="audio" || height<96')
    assert [stream.get("height") for stream in probed(clip)["streams"]] == [48, None]
    nothing = await ended(hosts, "asset_video", **given, filter="height>96")
    assert nothing == StepFailure("film/film.mp4 has no track that passes the filter.", final=True)


@pytest.mark.parametrize("source", ["film.mkv", "film.avi", "film.ts"])
async def test_a_clip_is_copied_from_mp4_only(hosts: StepProcessPool, source: str) -> None:
    refused = await ended(hosts, "asset_video", source=source, start="00:00:01.480", end="00:00:02.000")
    reason = f"A clip is copied from an MP4 file only, and film/{source} is none; a frame accurate clip can be made of it."
    assert refused == StepFailure(reason, final=True)


@pytest.mark.parametrize("accurate", [True, False])
async def test_times_of_the_source_are_kept(hosts: StepProcessPool, root: Path, accurate: bool) -> None:
    times = {"start": "00:00:02.400", "end": "00:00:03.000"}
    clip = await made(hosts, root, "asset_video", **times, copy_ts=True, frame_accurate=accurate)
    packets = probed(clip, "-select_streams", "v:0", "-show_entries", "packet=pts_time")["packets"]
    assert min(float(packet["pts_time"]) for packet in packets) == pytest.approx(2.4, abs=0.02)
    assert numbers(clip)[0] == 60


async def test_a_clip_of_an_odd_size_is_made_even(hosts: StepProcessPool, root: Path) -> None:
    clip = await made(hosts, root, "asset_video", source="odd.mp4", start="00:00:00", end="00:00:01", frame_accurate=True)
    [stream] = probed(clip)["streams"]
    assert (stream["width"], stream["height"], stream["nb_frames"]) == (128, 96, "25")


@pytest.mark.parametrize(("repeats", "loops"), [(-1, None), (0, 0), (3, 3)])
async def test_a_gif_has_its_frames_rate_size_and_repeats(
    hosts: StepProcessPool, root: Path, repeats: int, loops: int | None
) -> None:
    given = {"start": "00:00:01.000", "end": "00:00:02.000", "fps": 5, "width": 63.0, "playback_repeats": repeats}
    gif = await made(hosts, root, "asset_gif", **given)
    [stream] = probed(gif)["streams"]
    assert (stream["codec_name"], stream["width"], stream["height"], stream["r_frame_rate"]) == ("gif", 64, 48, "5/1")
    shown = numbers(gif)
    assert len(shown) == 5
    assert all(abs(number - expected) <= 3 for number, expected in zip(shown, range(25, 50, 5), strict=True))
    data = gif.read_bytes()
    at = data.find(b"NETSCAPE2.0")
    assert (int.from_bytes(data[at + 13 : at + 15], "little") if at >= 0 else None) == loops


@pytest.mark.parametrize(("speed", "frames"), [(2.0, 5), (0.5, 20)])
async def test_the_speed_of_a_gif_changes_how_long_it_lasts(hosts: StepProcessPool, root: Path, speed: float, frames: int) -> None:
    gif = await made(hosts, root, "asset_gif", start="00:00:00", end="00:00:01", fps=10, playback_speed=speed)
    assert len(numbers(gif)) == pytest.approx(frames, abs=1)


async def test_a_gif_without_speed_is_one_frame(hosts: StepProcessPool, root: Path) -> None:
    gif = await made(hosts, root, "asset_gif", start="00:00:01.480", end="00:00:02.000", playback_speed=0.0)
    assert numbers(gif) == [37]


@pytest.mark.parametrize(
    ("end", "speed", "shown"),
    [
        ("00:00:01.040", 1.0, [25]),
        ("00:00:01.200", 10.0, [25]),
        ("00:00:01.160", 2.0, [25]),
        ("00:00:01.400", 4.0, [25]),
    ],
)
async def test_a_gif_has_at_least_one_frame(hosts: StepProcessPool, root: Path, end: str, speed: float, shown: list[int]) -> None:
    """The clip may be very short, and very fast."""
    assert numbers(await made(hosts, root, "asset_gif", start="00:00:01.000", end=end, playback_speed=speed)) == shown


async def test_a_picture_that_cannot_be_decoded_is_refused_in_a_sentence(hosts: StepProcessPool) -> None:
    refused = await ended(hosts, "asset_gif", source="damaged.mp4", start="00:00:02.040", end="00:00:02.240")
    assert refused == StepFailure(
        "The picture of film/damaged.mp4 cannot be decoded from 00:00:02.040 to 00:00:02.240.", final=True
    )
    refused = await ended(hosts, "asset_image", source="damaged.mp4", time="00:00:02.040")
    assert refused == StepFailure("The picture of film/damaged.mp4 at 00:00:02.040 cannot be decoded.", final=True)


@pytest.mark.parametrize(
    ("workflow", "wanted", "tracks"),
    [
        ("asset_video", {}, ["video", "audio"]),
        ("asset_video", {"copy_ts": True}, ["video", "audio"]),
        ("asset_video", {"frame_accurate": True}, ["video", "audio"]),
        ("asset_video", {"mezzanine": True}, ["video", "audio"]),
        ("asset_gif", {}, ["video"]),
        ("asset_image", {"time": "00:00:02"}, ["video"]),
    ],
)
async def test_an_asset_carries_nothing_of_its_source_but_tracks(
    hosts: StepProcessPool, root: Path, workflow: str, wanted: dict[str, Any], tracks: list[str]
) -> None:
    """A place of filming, comments, chapters and a timecode are removed, since they would not be true for a part."""
    assert SECRET.encode() in (root / "film/noted.mov").read_bytes()
    times = wanted if "time" in wanted else {"start": "00:00:02", "end": "00:00:03", **wanted}
    path = await made(hosts, root, workflow, source="noted.mov", **times)
    assert SECRET.encode() not in path.read_bytes()
    probe = probed(path, "-show_format", "-show_streams", "-show_chapters")
    assert [stream["codec_type"] for stream in probe["streams"]] == tracks
    assert probe["chapters"] == []
    tag_names = {name for stream in (probe["format"], *probe["streams"]) for name in stream.get("tags", {})}
    assert not tag_names & {"title", "comment", "location", "timecode", "com.apple.quicktime.description"}
    assert [stream["tags"]["language"] for stream in probe["streams"] if stream["codec_type"] == "audio"] == ["ger"] * tracks.count(
        "audio"
    )


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"source": "none.mp4"}, "There is no file film/none.mp4."),
        ({"source": "out.mp4"}, "The file is outside the media root."),
        ({"source": "sound.mp4"}, "film/sound.mp4 has no video track."),
        ({"source": "-wide.nut"}, "The picture of film/-wide.nut has more than 16384 pixels on a side."),
        ({"time": "00:00:04.100"}, "00:00:04.100 is past the end of film/film.mp4."),
        ({"time": "99:59:59.999"}, "99:59:59.999 is past the end of film/film.mp4."),
    ],
)
async def test_what_cannot_be_made_fails_with_a_sentence(hosts: StepProcessPool, wanted: dict[str, Any], reason: str) -> None:
    assert await ended(hosts, "asset_image", **{"time": "00:00:00", **wanted}) == StepFailure(reason, final=True)


@pytest.mark.parametrize("source", ["empty.mp4", "half.mp4", "playlist.mp4", "concat.mp4"])
async def test_hostile_files_are_refused_without_a_path_of_ours(hosts: StepProcessPool, root: Path, source: str) -> None:
    refused = await ended(hosts, "asset_image", source=source, time="00:00:00")
    assert isinstance(refused, StepFailure)
    assert refused.final
    assert str(root) not in refused.reason


async def test_a_clip_past_the_end_or_backwards_is_refused(hosts: StepProcessPool) -> None:
    late = await ended(hosts, "asset_video", start="00:00:03.000", end="00:00:04.100")
    assert late == StepFailure("00:00:04.100 is past the end of film/film.mp4.", final=True)
    back = await ended(hosts, "asset_gif", start="00:00:03.000", end="00:00:03.000")
    assert back == StepFailure("The end of the clip is not after its start.", final=True)


async def test_progress_is_shown(hosts: StepProcessPool) -> None:
    listener = Listener()
    await ended(hosts, "asset_video", listener=listener, start="00:00:00", end="00:00:04", frame_accurate=True)
    assert listener.fractions
    assert all(0 <= fraction <= 1 for fraction, _ in listener.fractions)
