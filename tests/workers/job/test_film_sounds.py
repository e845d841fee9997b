"""The sound tracks of films that `vod_ingest` makes: stereo pairs, roles, names and loudness."""

from __future__ import annotations

import subprocess
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from pydantic import ValidationError

from tests.support.packages import Results, run
from tests.support.sources.films import AAC, ffmpeg
from tests.support.sources.numbered_frames import probed
from tests.support.step_hosts import Listener
from workers.adapters.ffmpeg import find
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.workflows.vod.ingest import VodIngest
from workers.kernel.fork_client import ForkServer
from workers.media.hls import attributes
from workers.media.loudness import meter, read_meter

SECONDS = 6
PITCHES = (300, 400, 500, 600, 700, 800, 900, 1000)
Ingest = Callable[..., Awaitable[tuple[Results | StepFailure, list[str]]]]
_MPD = "{urn:mpeg:dash:schema:mpd:2011}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sounds") / "media"
    (root / "in").mkdir(parents=True)
    picture = ("-f", "lavfi", "-i", f"testsrc2=s=320x180:r=25:d={SECONDS}")
    tones = [part for pitch in PITCHES for part in ("-f", "lavfi", "-i", f"sine={pitch}:sample_rate=48000:d={SECONDS}")]
    eight = [part for track in range(len(PITCHES)) for part in ("-map", f"{track + 1}:a")]
    mxf = ("-c:v", "mpeg2video", "-b:v", "2M", "-c:a", "pcm_s16le", str(root / "in" / "eight.mxf"))
    ffmpeg(*picture, *tones, "-map", "0:v", *eight, *mxf)
    h264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50", *AAC)
    stereo = (*picture, *tones[:12], "-map", "0:v", "-map", "1:a", "-map", "2:a", "-map", "3:a", *h264, "-ac", "2")
    ffmpeg(*stereo, "-metadata:s:a:0", "language=ger", "-disposition:a:1", "comment", str(root / "in" / "three.mkv"))
    programme = "aevalsrc=0.01*sin(2*PI*440*t)*(1+0.9*sin(3*t))+0.1*sin(2*PI*900*t)*gt(mod(t\\,2)\\,1.9)"
    soft = ("-f", "lavfi", "-i", f"{programme}:s=48000:c=stereo:d={SECONDS}")
    quiet = ("-f", "lavfi", "-i", f"anullsrc=cl=stereo:r=48000:d={SECONDS}")
    ffmpeg(*picture, *soft, *quiet, "-map", "0:v", "-map", "1:a", "-map", "2:a", *h264, str(root / "in" / "soft.mp4"))
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def ingest(hosts: StepProcessPool, root: Path) -> Ingest:
    async def ingested(content: str, file: str, **parameters: Any) -> tuple[Results | StepFailure, list[str]]:
        listener = Listener()
        made = await run(hosts, root, "vod_ingest", content_id=content, file=f"in/{file}", listener=listener, **parameters)
        return made, [message for _, message in listener.lines]

    return ingested


def pitch(path: Path, track: int, channel: int) -> int:
    """Return the pitch in hertz, from the number of rises of the samples through zero."""
    chosen = ("-map", f"0:a:{track}", "-af", f"pan=mono|c0=c{channel}", "-ar", "48000", "-f", "s16le", "-")
    command = [str(find("ffmpeg")), "-v", "error", "-i", str(path), *chosen]
    samples = array("h", subprocess.run(command, capture_output=True, check=True).stdout)
    middle = samples[48_000 : 4 * 48_000]
    return round(sum(before < 0 <= after for before, after in pairwise(middle)) / 3)


def integrated(path: Path, track: int, folder: Path) -> tuple[float | None, float | None]:
    """Return the loudness in LUFS and the true peak in dBTP."""
    listing = f"{path.stem}-{track}.txt"
    ffmpeg("-i", str(path), "-map", f"0:a:{track}", "-af", meter(listing, peaks=True), "-f", "null", "-", folder=folder)
    reading = read_meter(folder / listing)
    return reading.integrated, reading.true_peak


async def test_tracks_of_one_channel_are_joined_to_stereo_pairs(ingest: Ingest, root: Path) -> None:
    made, log = await ingest("pairs", "eight.mxf", stereo_pairs=True)
    assert not isinstance(made, StepFailure)
    film = root / "pairs" / "pairs.mp4"
    sounds = [stream for stream in probed(film)["streams"] if stream["codec_type"] == "audio"]
    assert [sound["channels"] for sound in sounds] == [2, 2, 2, 2]
    heard = [pitch(film, track, channel) for track in range(4) for channel in range(2)]
    assert heard == pytest.approx(PITCHES, abs=3)
    assert len(made["renditions"]["audios"]) == 4
    assert "4 pairs of sound tracks of in/eight.mxf are joined to stereo." in log


async def test_players_are_told_what_sound_tracks_are_for(ingest: Ingest, root: Path) -> None:
    sounds = [
        {"tracks": [1], "name": "Ton, original"},
        {"tracks": [3], "role": "description", "language": "de", "name": "Hörfilm"},
        {"tracks": [2]},
    ]
    made, _ = await ingest("roles", "three.mkv", sounds=sounds)
    assert not isinstance(made, StepFailure)
    assert made["convert"]["copied"]
    film = root / "roles" / "roles.mp4"
    assert [pitch(film, track, 0) for track in range(3)] == pytest.approx([300, 500, 400], abs=3)
    tagged = [stream for stream in probed(film)["streams"] if stream["codec_type"] == "audio"]
    assert [element["tags"]["language"] for element in tagged] == ["ger", "deu", "und"]
    assert [element["tags"].get("name") for element in tagged] == ["Ton, original", "Hörfilm", None]
    assert tagged[1]["disposition"]["visual_impaired"] == tagged[2]["disposition"]["comment"] == 1
    playlist = (root / "roles" / "clear" / "master.m3u8").read_text()
    media = [attributes(line) for line in playlist.splitlines() if "TYPE=AUDIO" in line]
    assert {medium["NAME"] for medium in media} == {"Ton, original", "Hörfilm", "audio"}
    described = next(medium for medium in media if medium["NAME"] == "Hörfilm")
    assert described["CHARACTERISTICS"] == "public.accessibility.describes-video"
    manifest = etree.parse(root / "roles" / "clear" / "manifest.mpd")
    roles = {
        adaptation.findtext(f"{_MPD}Label"): [element.get("value") for element in adaptation.iter(f"{_MPD}Role")]
        for adaptation in manifest.iter(f"{_MPD}AdaptationSet")
        if any((url.text or "").startswith("audio-") for url in adaptation.iter(f"{_MPD}BaseURL"))
    }
    assert roles == {"Ton, original": ["main"], "Hörfilm": ["description"], None: ["commentary"]}


@pytest.mark.parametrize(("wanted", "target", "peak"), [({"profile": "a85"}, -24, -2), ({"target": -14}, -14, -1)])
async def test_sound_is_brought_to_a_loudness(
    wanted: dict[str, Any], target: float, peak: float, ingest: Ingest, root: Path, tmp_path: Path
) -> None:
    content = f"loud{-target}"
    before, _ = integrated(root / "in" / "soft.mp4", 0, tmp_path)
    assert before is not None
    assert abs(before - target) > 3
    made, log = await ingest(content, "soft.mp4", loudness=wanted)
    assert not isinstance(made, StepFailure)
    assert made["convert"]["copied"], "the picture is encoded again"
    loudness, largest = integrated(root / content / f"{content}.mp4", 0, tmp_path)
    assert loudness == pytest.approx(target, abs=0.5)
    assert largest is not None
    assert largest <= peak
    assert "Sound track 2 is silent, or too short to be measured; its loudness stays as it is." in log


@pytest.mark.parametrize(
    ("sounds", "reason"),
    [
        ([{"tracks": [9]}], "in/three.mkv has no sound track 9: it has 3."),
        ([{"tracks": [1, 2]}], "Sound track 1 of in/three.mkv has 2 channels; only tracks of one are joined."),
    ],
)
async def test_tracks_that_are_not_there_are_refused(sounds: list[dict[str, Any]], reason: str, ingest: Ingest) -> None:
    made, _ = await ingest("refused", "three.mkv", sounds=sounds)
    assert isinstance(made, StepFailure)
    assert made.reason == reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"sounds": []},
        {"sounds": [{"tracks": [1]}] * 9},
        {"sounds": [{"tracks": [1, 2, 3]}]},
        {"sounds": [{"tracks": [1, 1]}]},
        {"sounds": [{"tracks": [0]}]},
        {"sounds": [{"tracks": [1], "role": "star"}]},
        {"sounds": [{"tracks": [1], "language": "xq"}]},
        {"sounds": [{"tracks": [1], "name": "a\nb"}]},
        {"sounds": [{"tracks": [1]}], "stereo_pairs": True},
        {"loudness": {"target": 3}},
        {"loudness": {"profile": "loud"}},
        {"loudness": {"target": float("nan")}},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VodIngest.model_validate({"content_id": "film", "file": "in/film.mxf", **wrong})
