"""The workflow `compose` in real step hosts, with the real ffmpeg and Shaka Packager, proved by decoding the published films."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from re import findall
from typing import Any
from xml.etree import ElementTree

import pytest
import threefive

from projections.job.queue import QueuedRun
from tests.support.npm_packages import shaka_player
from tests.support.packages import Results, published, run
from tests.support.programs import program
from tests.support.sources.numbered_frames import numbers, probed
from tests.support.sources.playlists import FRAMES, H264, digests, event, gaps, item, keys, lufs, playlist, source
from tests.support.step_hosts import Listener, order
from tests.workers.job.sources import ffmpeg
from tests.workers.job.test_vod_engine import decrypted
from tests.workers.job.theatre import HEIGHT, WIDTH, Theatre
from workers.job.media_paths import MediaPaths
from workers.job.protocol import Finished, Protection, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.workspaces import Workspaces
from workers.kernel.fork_client import ForkServer

SMALL, OTHER, WIDE, SILENT, LOUD, TRUNCATED, LIST, TURNED = 1, 2, 3, 4, 5, 6, 7, 8
KID, KEY = "22dac626328f8d21b3ffcd10e5b85d43", "000102030405060708090a0b0c0d0e0f"
COMMON = "0000003470737368010000001077efecc0b24d02ace33c1e52e2fb4b00000001" + KID + "00000000"
PROTECTION = Protection(KID, KEY, "1" * 32, "skd://a", {"cenc": COMMON, "cbcs": COMMON}, {"drm_data": []})
INSERT = {"startAt": "00:00:01.240", "duration": "00:00:30", "type": 0, "frameAccurate": True}
REPLACE = {"startAt": "00:00:02.120", "duration": "00:00:01", "type": 1, "frameAccurate": True}
LOOSE = {"startAt": "00:00:00.300", "duration": "00:00:10", "type": 0, "frameAccurate": None}
MIXED = playlist(
    item(SMALL, LOOSE),
    item(WIDE),
    item(OTHER, start="00:00:01.000", end="00:00:02.000", frameAccurate=True),
    item(SILENT),
    item(SMALL, INSERT, REPLACE, start="00:00:00.500"),
)
LENGTHS = (100, 75, 25, 100, 100)
"""The lengths of the items in frames of the film. The last item begins at the key frame before its start."""
WIDE_SHOWN = [min(round(n * 30 / 25), 89) for n in range(75)]
SHOWN = [*range(100), *WIDE_SHOWN, *range(25, 50), *range(100), *range(100)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a media root. Its path contains a bar and an equals sign, which have a meaning for programs."""
    root = tmp_path_factory.mktemp("composing") / "media|in=put"
    large = ("-vf", f"scale={WIDTH}:{HEIGHT}:flags=neighbor")
    source(root, SMALL, *large, *H264)
    source(root, OTHER, *large, *H264, hertz=880, decibels=-6.0)
    source(root, WIDE, "-vf", f"scale={2 * WIDTH}:{HEIGHT}:flags=neighbor,setsar=2/1", *H264, fps="30", frames=90, decibels=-20.0)
    source(root, SILENT, *large, *H264, "-bf", "0", decibels=None)
    source(root, LOUD, *large, *H264, decibels=8.0)
    whole = source(root, TRUNCATED, *large, *H264, "-movflags", "+faststart")
    whole.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    upright = source(root, TURNED).rename(root / "upright.mp4")
    ffmpeg("-display_rotation", "90", "-i", str(upright), "-c", "copy", str(root / event(TURNED) / f"{event(TURNED)}.mp4"))
    (root / event(LIST)).mkdir()
    (root / event(LIST) / f"{event(LIST)}.mp4").write_text(f"ffconcat version 1.0\nfile ../{event(SMALL)}/{event(SMALL)}.mp4\n")
    (root / event(SMALL) / "metadata.json").write_text('{"startTime": "2031-01-02T19:00:00.000Z"}')
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def composed(
    hosts: StepProcessPool, root: Path, *items: dict[str, Any], content_id: str = "film", **given: Any
) -> Results | StepFailure:
    shutil.rmtree(root / content_id, ignore_errors=True)
    return await run(hosts, root, "compose", content_id=content_id, generation=1, playlist=playlist(*items), **given)


async def refused(hosts: StepProcessPool, root: Path, *items: dict[str, Any], **given: Any) -> str:
    """Return the reason for which a playlist is refused. Nothing is published, and no file is left."""
    failed = await composed(hosts, root, *items, content_id="none", **given)
    assert isinstance(failed, StepFailure), failed
    assert failed.final
    assert not (root / "none").exists()
    assert not (root / ".jobs/17").exists()
    return failed.reason


@pytest.fixture(scope="module")
async def mixed(hosts: StepProcessPool, root: Path) -> Results:
    made = await run(hosts, root, "compose", content_id="mixed", generation=1, playlist=MIXED, renditions=[192, 96])
    assert not isinstance(made, StepFailure), made
    return made


@pytest.fixture(scope="module")
async def secret(hosts: StepProcessPool, root: Path) -> Results:
    async def protection(client: str, content_id: str) -> Protection:
        return PROTECTION

    made = await run(hosts, root, "compose", content_id="secret", generation=1, playlist=MIXED, protection=protection)
    assert not isinstance(made, StepFailure), made
    return made


async def test_what_agrees_is_copied_to_the_byte(hosts: StepProcessPool, root: Path) -> None:
    made = await composed(hosts, root, item(SMALL), item(OTHER), item(SMALL))
    assert not isinstance(made, StepFailure), made
    assert (made["sources"]["copied"], made["sources"]["sound"]) == (3, "copied")
    sources = [root / event(number) / f"{event(number)}.mp4" for number in (SMALL, OTHER, SMALL)]
    film = root / "film/film.mp4"
    assert numbers(film) == [*range(FRAMES)] * 3
    video, sound = digests(film, "v:0"), digests(film, "a:0")
    assert video == [digest for source in sources for digest in digests(source, "v:0")]
    assert set(sound) <= {digest for source in sources for digest in digests(source, "a:0")}
    assert gaps(film, "v:0") == [0.04]
    assert gaps(film, "a:0") == pytest.approx([1024 / 48_000], abs=0.0002)
    for place, path in enumerate(sources):
        assert lufs(film, 4.0 * place + 0.1, 3.8) == pytest.approx(lufs(path, 0.1, 3.8), abs=0.2)
    streams = probed(film)["streams"]
    assert [(stream["codec_tag_string"], float(stream["start_time"])) for stream in streams] == [("avc1", 0.0), ("mp4a", 0.0)]
    assert all(float(stream["duration"]) == pytest.approx(12.0, abs=0.022) for stream in streams)


async def test_what_its_container_turns_is_made_upright(hosts: StepProcessPool, root: Path) -> None:
    made = await composed(hosts, root, item(TURNED), item(TURNED))
    assert not isinstance(made, StepFailure), made
    assert made["sources"]["copied"] == 0
    film = root / "film/film.mp4"
    [video] = [stream for stream in probed(film)["streams"] if stream["codec_type"] == "video"]
    assert (video["width"], video["height"]) == (96, 128)
    assert numbers(film, turned="transpose=clock,") == [*range(FRAMES)] * 2


async def test_a_copy_begins_at_the_key_frame_before_its_start(hosts: StepProcessPool, root: Path) -> None:
    made = await composed(hosts, root, item(SMALL, start="00:00:01.500", end="00:00:03.000"), item(OTHER, end="00:00:01.000"))
    assert not isinstance(made, StepFailure), made
    assert made["sources"]["copied"] == 2
    shown = numbers(root / "film/film.mp4")
    assert shown[0] == 30
    border = shown.index(0)
    assert shown == [*range(30, 30 + border), *range(len(shown) - border)]
    assert 75 <= 30 + border <= 78
    assert made["package"]["duration"] == pytest.approx(len(shown) / 25)


async def test_items_of_one_and_two_frames_are_not_lost(hosts: StepProcessPool, root: Path) -> None:
    spans = [(SMALL, 29, 31), (OTHER, 0, 1), (SILENT, 98, 100), (SMALL, 29, 30), (SMALL, 1, 3), (OTHER, 98, 99)]
    cut = [item(key, start=f"00:00:{a / 25:06.3f}", end=f"00:00:{b / 25:06.3f}", frameAccurate=True) for key, a, b in spans]
    made = await composed(hosts, root, *cut)
    assert not isinstance(made, StepFailure), made
    for file in ("film.mp4", "clear/video-192.mp4"):
        assert numbers(root / "film" / file) == [number for _, a, b in spans for number in range(a, b)]


def test_items_follow_each_other_frame_by_frame(mixed: Results, root: Path) -> None:
    assert (mixed["sources"]["copied"], mixed["sources"]["sound"]) == (3, "encoded again")
    assert len(SHOWN) == sum(LENGTHS)
    for file in ("mixed.mp4", "clear/video-192.mp4", "clear/video-192.m3u8"):
        shown = numbers(root / "mixed" / file)
        wide = slice(LENGTHS[0], LENGTHS[0] + LENGTHS[1])
        assert all(abs(frame - other) <= 1 for frame, other in zip(shown[wide], WIDE_SHOWN, strict=True)), (
            "of 30 frames 25 are left"
        )
        assert shown[: wide.start] + shown[wide.stop :] == SHOWN[: wide.start] + SHOWN[wide.stop :], file
    assert mixed["package"]["duration"] == pytest.approx(sum(LENGTHS) / 25)


def test_time_stamps_go_on_at_every_border(mixed: Results, root: Path) -> None:
    film = root / "mixed/mixed.mp4"
    assert gaps(film, "v:0") == [0.04]
    assert gaps(film, "a:0") == pytest.approx([1024 / 48_000], abs=0.0002)
    for stream in probed(film)["streams"]:
        assert float(stream["start_time"]) == 0.0
        assert float(stream["duration"]) == pytest.approx(16.0, abs=0.022)
    decoded = [
        float(packet["dts_time"])
        for packet in probed(film, "-select_streams", "v:0", "-show_entries", "packet=dts_time")["packets"]
    ]
    assert decoded == sorted(set(decoded))


def test_sound_that_is_encoded_again_has_the_same_loudness_everywhere(mixed: Results, root: Path) -> None:
    borders = [0.0, *accumulate(frames / 25 for frames in LENGTHS)]
    levels = [
        lufs(root / "mixed/mixed.mp4", begin + 0.1, frames / 25 - 0.2) for begin, frames in zip(borders, LENGTHS, strict=False)
    ]
    assert levels[3] <= -69, "silence stays silent"
    assert levels[:3] + levels[4:] == pytest.approx([-23.0] * 4, abs=1.0)


async def test_a_step_of_loudness_has_sound_encoded_again(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    made = await composed(hosts, root, item(SMALL), item(LOUD), listener=listener)
    assert not isinstance(made, StepFailure), made
    assert (made["sources"]["copied"], made["sources"]["sound"]) == (2, "encoded again")
    assert [lufs(root / "film/film.mp4", at, 3.8) for at in (0.1, 4.1)] == pytest.approx([-23.0] * 2, abs=1.0)
    assert "its loudness jumps before item 2" in str(listener.lines)


async def test_the_sound_of_a_film_is_brought_to_the_loudness_of_its_playlist(hosts: StepProcessPool, root: Path) -> None:
    playlist = {"items": [item(SMALL), item(SMALL)], "loudness": {"target": -19.5}}
    made = await run(hosts, root, "compose", content_id="film", generation=0, playlist=playlist)
    assert not isinstance(made, StepFailure), made
    assert made["sources"]["sound"] == "encoded again"
    assert [lufs(root / "film/film.mp4", at, 3.8) for at in (0.1, 4.1)] == pytest.approx([-19.5] * 2, abs=0.6)


def breaks_of(text: str) -> list[Any]:
    cues = [threefive.Cue(f"0x{code}") for code in findall(r"SCTE35-(?:OUT|IN)=0x(\w+)", text)]
    assert all(cue.decode() for cue in cues)
    return cues


def test_markers_are_splices_in_every_playlist(mixed: Results, root: Path) -> None:
    """The first marker is at the nearest key frame; the second shifts the rest of the film, the third does not."""
    folder = root / "mixed/clear"
    begins = sum(LENGTHS[:4]) / 25
    assert [ad_break["at"] for ad_break in mixed["join"]["breaks"]] == pytest.approx([0.0, begins + 1.24, begins + 2.12])
    for name in ("video-192.m3u8", "video-192-iframes.m3u8", "video-96.m3u8", "audio-1.m3u8"):
        text = (folder / name).read_text()
        splices = breaks_of(text)
        parts = [(splice.command.splice_event_id, splice.command.out_of_network_indicator) for splice in splices]
        assert parts == [(number, out) for number in (1, 2, 3) for out in (True, False)], name
        assert [splice.command.pts_time for splice in splices] == pytest.approx(
            [0.0, 10.0, begins + 11.24, begins + 41.24, begins + 42.12, begins + 43.12], abs=1e-4
        )
        assert [splice.command.break_duration for splice in splices[::2]] == [10.0, 30.0, 1.0]
        assert findall(r"#EXT-X-CUE-OUT:(\S+)", text) == ["10.000", "30.000", "1.000"]
        assert text.count("#EXT-X-CUE-IN\n") == 3
        assert "PLACEMENT-OPPORTUNITY" not in text


def test_a_segment_begins_at_each_marker(mixed: Results, root: Path) -> None:
    """A segment begins exactly at the marker's frame, in all sizes; key frames every two seconds stay where they are."""
    begins = sum(LENGTHS[:4]) / 25
    usual = [2.0 * number for number in range(8)]
    for lines in (192, 96):
        assert keys(root / f"mixed/clear/video-{lines}.mp4") == pytest.approx(
            sorted([*usual, begins + 1.24, begins + 2.12, begins + 3.12])
        )
        text = (root / f"mixed/clear/video-{lines}.m3u8").read_text()
        at = 0.0
        starts: list[float] = []
        for tag, seconds in findall(r"(#EXT-X-CUE-OUT|#EXTINF):([\d.]+)", text):
            if tag == "#EXTINF":
                at += float(seconds)
            else:
                starts.append(at)
        assert starts == pytest.approx([0.0, begins + 1.24, begins + 2.12], abs=0.002)


def test_the_manifest_has_the_same_splices(mixed: Results, root: Path) -> None:
    manifest = ElementTree.parse(root / "mixed/clear/manifest.mpd").getroot()
    name = "{urn:mpeg:dash:schema:mpd:2011}"
    [period] = manifest.findall(f"{name}Period")
    events = list(period.iter(f"{name}Event"))
    binary = [cue.text or "" for cue in period.iter("{http://www.scte.org/schemas/35/2016}Binary")]
    read = [threefive.Cue(text) for text in binary]
    assert all(cue.decode() for cue in read)
    begins = sum(LENGTHS[:4]) / 25
    at = [int(event.get("presentationTime", "")) / 90_000 for event in events]
    assert at == pytest.approx([0.0, 0.0, begins + 1.24, begins + 1.24, begins + 2.12, begins + 3.12])
    assert [cue.command.splice_event_id for cue in read] == [1, 1, 2, 2, 3, 3]


def test_all_of_a_package_is_published(mixed: Results, root: Path) -> None:
    metadata = json.loads((root / "mixed/metadata.json").read_text())
    assert {file["name"] for file in metadata["files"]} == published(root, "mixed") - {"metadata.json"}
    assert {"mixed.mp4", "mixed.ism", "thumbnail.jpg", "sprites.vtt", "sprites-1.jpg"} <= published(root, "mixed")
    assert mixed["package"]["playlists"] == ["clear/master.m3u8", "clear/manifest.mpd"]
    assert (metadata["duration"], mixed["package"]["thumbnail"]) == (mixed["package"]["duration"], "thumbnail.jpg")


@pytest.mark.parametrize("scheme", ["cenc", "cbcs"])
def test_a_protected_film_is_shown_with_its_key(secret: Results, root: Path, scheme: str, tmp_path: Path) -> None:
    shown = decrypted(root / "secret" / scheme / "video-192.mp4", bytes.fromhex(KEY), tmp_path / "plain.mp4")
    assert len(shown) == sum(LENGTHS)
    assert shown[: LENGTHS[0]] == SHOWN[: LENGTHS[0]]
    assert {name.rpartition("/")[0] for name in published(root, "secret")} == {"", "cenc", "cbcs"}
    assert secret["package"]["drm"] == PROTECTION.drm_json
    assert [cue.command.splice_event_id for cue in breaks_of((root / "secret" / scheme / "video-192.m3u8").read_text())] == [
        *(1, 1, 2, 2, 3, 3)
    ]


async def test_a_film_plays_across_its_borders(
    mixed: Results, secret: Results, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Shaka Player in Chromium shows a frame before and one after each border and each marker, in HLS and in DASH, encrypted or
    not."""
    taken = tmp_path_factory.mktemp("pictures") / "picture.jpg"

    def read(given: bytes) -> int:
        taken.write_bytes(given)
        [number] = numbers(taken)
        return number

    frames = (98, 176, 198, 201, 298, 302, 329, 333, 351, 354, 397)
    shown = [(SHOWN[frame], (frame + 0.5) / 25) for frame in frames]
    theatre = Theatre(program("chromium"), shaka_player(), files=root, read=read)
    async with theatre.open():
        for manifest, given in (
            ("mixed/clear/master.m3u8", {}),
            ("mixed/clear/manifest.mpd", {}),
            ("secret/cenc/manifest.mpd", {KID: KEY}),
        ):
            seen, report = await theatre.play(f"/media/{manifest}", given, shown=shown, home=tmp_path_factory.mktemp("profile"))
            assert seen == [number for number, _ in shown], (manifest, report)
            assert report["duration"] == pytest.approx(16.0, abs=0.1)


async def test_times_of_day_count_from_the_start_of_the_source(hosts: StepProcessPool, root: Path) -> None:
    """The start that the packager noted takes precedence over that of the Event."""

    async def starts(key: str) -> str | None:
        return "2031-01-02T20:00:00.000Z" if key in (event(SMALL), event(OTHER)) else None

    span = {"start": "2031-01-02T19:00:01.000Z", "end": "2031-01-02T20:00:02+01:00", "frameAccurate": True}
    late = {"start": "2031-01-02T20:00:03Z", "frameAccurate": True}
    made = await composed(hosts, root, item(SMALL, **span), item(OTHER, **late), starts=starts)
    assert not isinstance(made, StepFailure), made
    assert numbers(root / "film/film.mp4") == [*range(25, 50), *range(75, 100)]
    reason = await refused(hosts, root, item(WIDE, **span), starts=starts)
    assert reason == f"The source of the Event {event(WIDE)} has no timecode, so 2031-01-02T19:00:01.000Z cannot be found in it."


async def test_what_cannot_be_composed_is_refused_in_a_sentence(hosts: StepProcessPool, root: Path) -> None:
    name = f"{event(SMALL)}/{event(SMALL)}.mp4"
    beyond = {**INSERT, "startAt": "00:00:04.200"}
    missing = f"There is no file {event(99)}/{event(99)}.mp4."
    assert await refused(hosts, root, item(SMALL), item(99)) == missing
    assert await refused(hosts, root, item(SMALL, start="00:00:05")) == f"{name} has no picture at 00:00:05."
    assert await refused(hosts, root, item(SMALL, end="00:00:05")) == f"00:00:05 is past the end of {name}."
    assert await refused(hosts, root, item(SMALL, start="00:00:02", end="00:00:01")) == "The end of item 1 is not after its start."
    assert await refused(hosts, root, item(SMALL), item(OTHER, beyond)) == "The marker at 00:00:04.200 of item 2 is past its end."
    assert "is of a format that is not read" in await refused(hosts, root, item(LIST))
    assert "is incomplete" in await refused(hosts, root, item(SMALL), item(TRUNCATED))


@pytest.mark.parametrize("how", ["replaced", "written to", "deleted"])
async def test_a_source_that_changes_meanwhile_is_noticed(hosts: StepProcessPool, root: Path, how: str) -> None:
    """The source changes after it was examined, and before it is used."""
    name = f"{event(50)}/{event(50)}.mp4"
    path = root / name
    path.parent.mkdir(exist_ok=True)
    shutil.copy2(root / event(SMALL) / f"{event(SMALL)}.mp4", path)

    def change() -> None:
        if how == "deleted":
            path.unlink()
        elif how == "written to":
            with path.open("r+b") as file:
                file.write(file.read(1))
        else:
            shutil.copy2(path, path.with_name("new"))
            path.with_name("new").replace(path)

    reason = await refused(hosts, root, item(SMALL), item(50), after={"sources": change})
    assert reason == (f"There is no file {name}." if how == "deleted" else f"{name} was changed while the film was made.")


async def test_a_step_that_is_run_again_goes_on_where_it_was(hosts: StepProcessPool, root: Path) -> None:
    """The next run uses the complete items of the run before: the last item was not noted, or its bytes differ."""
    given: dict[str, Any] = {"generation": 1, "playlist": playlist(*[item(SMALL), item(OTHER)] * 4)}
    places, workspaces = MediaPaths(root, 17), Workspaces(root)

    async def made(step: str, task: int, *, again: int | None = None) -> tuple[Finished, Listener]:
        listener = Listener()
        ordered = order(step, workflow="compose", run=1 if again is None else again + 1, previous_run=again, **given)
        ended = await hosts.run(replace(ordered, task=task), listener)
        assert isinstance(ended, Finished), ended
        return ended, listener

    try:
        looked, _ = await made("sources", 1)
        await workspaces.publish(QueuedRun(17, 1, 1), looked.outputs, client="admin")
        first, _ = await made("items_1", 2)
        listed = places.workspace(2, 1) / "made.jsonl"
        lines = listed.read_text().splitlines()
        assert len(lines) == 2
        listed.write_text(f"{lines[0]}\n{lines[1][:40]}")
        second, listener = await made("items_1", 2, again=1)
        assert [line[1] for line in listener.lines] == ["Continuing after 1 items, which the previous run had."]
        assert second.outputs == first.outputs
        with (places.workspace(2, 2) / "film-1.ts").open("r+b") as film:
            film.write(b"other")
        third, listener = await made("items_1", 2, again=2)
        assert (listener.lines, third.outputs) == ([], first.outputs)
    finally:
        await workspaces.remove([17])
