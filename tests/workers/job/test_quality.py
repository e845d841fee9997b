"""The check of quality in whole jobs: films with faults at known seconds, in a real step host with the real ffmpeg."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import run
from tests.support.sources.films import changing
from tests.support.step_hosts import Listener
from tests.workers.job.sources import ffmpeg
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-qp", "8", "-pix_fmt", "yuv420p")
NAMED = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
MOVING = f"gradients=s=320x180:r=25:speed=0.05:seed=3,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,{NAMED}"


def tone(level: float) -> str:
    """Return a stereo tone of this level in LUFS."""
    return f"aevalsrc='{10 ** (level / 20):.6f}*sin(2*PI*1000*t)|{10 ** (level / 20):.6f}*sin(2*PI*1000*t)':c=stereo:s=48000"


def faulty(path: Path) -> None:
    """Make a film of 12 s: black until 2 s, still from 4 to 7, black from 9 to 10; silent from 3 to 5; 10 frames missing at 11 s.
    -14 LUFS."""
    black = "drawbox=c=black:t=fill:enable='lt(t,1.99)+between(t,8.99,9.99)'"
    still = "loop=loop=75:size=1:start=100,select='lt(n,300)'"
    gap = "select='not(between(n,275,284))'"
    picture = f"testsrc2=s=320x180:r=25:d=12,format=yuv420p,{NAMED},{still},setpts=N/25/TB,{black},{gap}"
    sound = f"{tone(-14)}:d=12,volume=0:enable='between(t,3,5)'"
    inputs = ("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound)
    ffmpeg(*inputs, "-t", "12", "-fps_mode", "vfr", *H264, "-c:a", "aac", "-b:a", "192k", str(path))


def sound_film(path: Path) -> None:
    inputs = ("-f", "lavfi", "-i", MOVING, "-f", "lavfi", "-i", tone(-23))
    ffmpeg(*inputs, "-t", "5", *H264, "-c:a", "aac", "-b:a", "192k", "-metadata:s:a:0", "language=eng", str(path))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("quality") / "media"
    for folder in ("film", "in", "good"):
        (root / folder).mkdir(parents=True)
    faulty(root / "film" / "film.mp4")
    sound_film(root / "good" / "good.mp4")
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="module")
async def report(hosts: StepProcessPool, root: Path) -> Mapping[str, Any]:
    made = await run(hosts, root, "quality_check", content_id="film")
    assert not isinstance(made, StepFailure), made
    content: Mapping[str, Any] = json.loads((root / "film" / "quality.json").read_bytes())
    return content


def spans(report: Mapping[str, Any], name: str) -> list[tuple[float, float]]:
    return [(span["begin"], span["end"]) for span in report[name]]


def near(*wanted: tuple[float, float]) -> Any:
    return [pytest.approx(value, abs=0.08) for value in wanted]


def test_faults_are_found_at_their_seconds(report: Mapping[str, Any]) -> None:
    picture, [sound] = report["picture"], report["sounds"]
    assert spans(picture, "black") == near((0, 2), (9, 10))
    assert spans(picture, "freeze") == near((4, 7))
    assert spans(picture, "missing") == near((11, 11.4))
    assert picture["duration"] == pytest.approx(12, abs=0.05)
    assert spans(sound, "silence") == near((3, 5))
    assert sound["integrated"] == pytest.approx(-14, abs=0.3)
    assert (picture["matrix"], picture["named"], picture["full_range"]) == ("bt709", True, False)
    assert report["decoding_errors"] == 0


def test_what_is_beyond_a_limit_is_said_in_sentences(report: Mapping[str, Any]) -> None:
    assert report["verdict"] == "fail"
    assert [reason["check"] for reason in report["reasons"]] == ["loudness"]
    assert report["reasons"][0]["message"].startswith("Audio track 1 is too loud: -14")


async def test_a_good_film_passes_and_its_event_is_told(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    made = await run(hosts, root, "quality_check", content_id="good", listener=listener)
    assert not isinstance(made, StepFailure), made
    notice = made["check"]["quality_check"]
    assert (notice["verdict"], notice["profile"], notice["reasons"]) == ("pass", "ebu-r128", [])
    assert notice["sounds"][0]["language"] == "eng"
    assert any("ebu-r128: pass" in str(line) for line in listener.lines)


async def test_a_house_has_a_profile_of_its_own(hosts: StepProcessPool, root: Path) -> None:
    profile = {"name": "house", "black_begin": 1, "black": 0.5, "freeze": 2, "silence": 1, "missing": 0.1, "warns": ["freeze"]}
    (root / "house.json").write_text(json.dumps(profile))
    made = await run(hosts, root, "quality_check", content_id="film", file="film.mp4", profile="house.json")
    assert not isinstance(made, StepFailure), made
    report = json.loads((root / "film" / "film.mp4.quality.json").read_bytes())
    seen = [(reason["check"], reason["verdict"]) for reason in report["reasons"]]
    assert seen == [("silence", "fail"), ("black", "fail"), ("black", "fail"), ("freeze", "warn"), ("missing", "fail")]
    assert "quality_check" not in made["check"], "another file than the film says nothing of the Event"


async def test_a_source_that_changes_is_measured_as_a_whole(hosts: StepProcessPool, root: Path) -> None:
    """The source changes its size, shape, rate, pixel format, sample rate and layout, twice. Flashes are 1.9 s apart, on black."""
    (root / "changing").mkdir()
    changing(root / "changing" / "film.ts")
    made = await run(hosts, root, "quality_check", content_id="changing", file="film.ts")
    assert not isinstance(made, StepFailure), made
    report = json.loads((root / "changing" / "film.ts.quality.json").read_bytes())
    assert report["picture"]["duration"] == pytest.approx(12, abs=0.1)
    assert spans(report["picture"], "black") == near(*((at + 0.1, at + 2) for at in range(0, 12, 2)))
    assert report["sounds"][0]["silence"] == []
    assert report["sounds"][0]["integrated"] is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "There is no quality profile bad.json: use ebu-r128, a85, or a file below the media root."),
        ("{", "The quality profile bad.json is not valid"),
        ('{"name": "x", "loudness": "loud"}', "The quality profile bad.json is not valid: loudness"),
        ('{"name": "x", "black": NaN}', "The quality profile bad.json is not valid"),
        ('{"name": "x", "warns": ["colour"]}', "The quality profile bad.json is not valid: warns.0"),
        ("[" * 60_000, "The quality profile bad.json is not valid"),
        (" " * 70_000, "The quality profile bad.json has more than 65536 bytes."),
    ],
)
async def test_a_broken_profile_fails_with_a_sentence(hosts: StepProcessPool, root: Path, text: str | None, reason: str) -> None:
    (root / "bad.json").unlink(missing_ok=True)
    if text is not None:
        (root / "bad.json").write_text(text)
    made = await run(hosts, root, "quality_check", content_id="good", profile="bad.json")
    assert isinstance(made, StepFailure)
    assert made.final
    assert made.reason.startswith(reason)


async def test_an_ingest_checks_what_it_publishes(hosts: StepProcessPool, root: Path) -> None:
    wanted = {"profile": "ebu-r128", "keep_private": True}
    made = await run(hosts, root, "vod_ingest", content_id="loud", file="film/film.mp4", quality=wanted)
    assert not isinstance(made, StepFailure), made
    notice = made["quality"]["quality"]
    assert (notice["verdict"], notice["keep_private"]) == ("fail", True)
    files = json.loads((root / "loud" / "metadata.json").read_bytes())["files"]
    assert "quality.json" in {file["name"] for file in files}
    assert json.loads((root / "loud" / "quality.json").read_bytes())["file"] == "loud.mp4"
