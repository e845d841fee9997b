"""The workflow `vod_package` in real step hosts, with the real ffmpeg and Shaka Packager, proved by decoding its files."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from re import findall
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest

from domain.drm import pssh, widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import Scheme
from domain.event.published_files import is_withheld
from tests.support.packages import Results, published, run, shown_by_packager
from tests.support.sources.numbered_frames import BITS, film, numbers, probed, tool
from workers.job.protocol import Protection, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.workflows.vod.renditions import ladder
from workers.job.workflows.vod.thumbnails import Sheets
from workers.kernel.fork_client import ForkServer
from workers.media.source import Picture

TONES = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4", "-f", "lavfi", "-i", "sine=frequency=880:duration=4")
TRACKS = ("-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu")
H264 = ("-c:v", "libx264", "-g", "30", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest")
KID, KEY, IV = UUID("22dac626-328f-8d21-b3ff-cd10e5b85d43"), bytes(range(16)), bytes(range(16, 32))
BOX = widevine.box([KID], Scheme.CENC, settings=DrmSettings(), content_id="x")
COMMON = pssh.box(UUID("1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"), b"", version=1, kids=[KID])
URI = "skd://keys.example/film?kid=1,2"
DRM = {"drm_provider": "THIRDPARTY", "drm_data": []}
PROTECTION = Protection(
    kid=KID.hex,
    key=KEY.hex(),
    iv=IV.hex(),
    fairplay_uri=URI,
    boxes={scheme: (BOX + COMMON).hex() for scheme in ("cenc", "cbcs")},
    drm_json=DRM,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a media root. Its path contains a comma and an equals sign, which have a meaning for the packager."""
    root = tmp_path_factory.mktemp("packages") / "media,in=put"
    for content in ("film", "secret"):
        (root / content).mkdir(parents=True)
    film(root / "film/film.mp4", *TRACKS, *H264, inputs=TONES)
    (root / "film/metadata.json").write_text('{"contentId": "film", "startTime": "2031-01-02T19:00:00.000Z"}')
    (root / "secret/secret.mp4").write_bytes((root / "film/film.mp4").read_bytes())
    (root / "secret/metadata.json").write_text("{")
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="module")
async def clear(hosts: StepProcessPool, root: Path) -> Results:
    made = await run(hosts, root, "vod_package", renditions=[720, 96, 48])
    assert not isinstance(made, StepFailure), made
    return made


@pytest.fixture(scope="module")
async def encrypted(hosts: StepProcessPool, root: Path) -> Results:
    async def protection(client: str, content_id: str) -> Protection:
        return PROTECTION

    made = await run(hosts, root, "vod_package", content_id="secret", protection=protection)
    assert not isinstance(made, StepFailure), made
    return made


def test_renditions_show_every_frame_and_are_never_upscaled(clear: Results, root: Path) -> None:
    sizes = [(video["width"], video["height"]) for video in clear["renditions"]["videos"]]
    assert sizes == [(128, 96), (64, 48)]
    for lines in (96, 48):
        file = root / f"film/clear/video-{lines}.mp4"
        assert numbers(file) == list(range(100))
        packets = probed(file, "-show_entries", "packet=pts_time,flags")["packets"]
        times = sorted((float(packet["pts_time"]), "K" in packet["flags"]) for packet in packets)
        assert [time for time, key in times if key] == [0.0, 2.0], "aligned"
        assert times[-1][0] == pytest.approx(3.96, abs=0.001)


def test_one_set_of_segments_serves_hls_and_dash(clear: Results, root: Path) -> None:
    folder = root / "film/clear"
    media = {"video-96.mp4", "video-48.mp4", "audio-1.mp4", "audio-2.mp4"}
    assert {path.name for path in folder.glob("*.mp4")} == media
    manifest = ElementTree.parse(folder / "manifest.mpd").getroot()
    assert {element.text for element in manifest.iter("{urn:mpeg:dash:schema:mpd:2011}BaseURL")} == media
    assert {name for path in folder.glob("*.m3u8") for name in findall(r"(?m)^[^#\n]*\.mp4$", path.read_text())} == media
    main = (folder / "master.m3u8").read_text()
    assert findall(r'TYPE=AUDIO.*?LANGUAGE="(\w+)".*?DEFAULT=(\w+)', main) == [("en", "YES"), ("de", "NO")]
    assert findall(r"RESOLUTION=(\S+?),", main.partition("I-FRAME")[0]) == ["128x96", "64x48"]
    for playlist in set(findall(r'(?m)^[\w-]+\.m3u8$|URI="([\w-]+\.m3u8)"', main)) - {""}:
        assert (folder / playlist).is_file()
    assert numbers(folder / "video-96.m3u8") == list(range(100)), "by its byte ranges"
    for name in media:
        assert b"cmfc" in (folder / name).read_bytes()[:64]
        kind = "Video" if name.startswith("video") else "Audio"
        assert f"type: {kind}" in shown_by_packager(folder / name)


def test_sprites_show_the_frames_of_their_times(clear: Results, root: Path) -> None:
    folder = root / "film"
    cues = findall(r"(\S+) --> (\S+)\n(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)", (folder / "sprites.vtt").read_text())
    assert [cue[:2] for cue in cues] == [("00:00:00.000", "00:00:02.000"), ("00:00:02.000", "00:00:04.000")]
    for cue, number in zip(cues, (0, 50), strict=True):
        left, top, width, height = map(int, cue[3:])
        assert (width, height) == (160, 120)
        cut = ("-vf", f"crop={width}:{height}:{left}:{top},scale={BITS}:1:flags=area,format=gray", "-f", "rawvideo", "-")
        asked = [tool("ffmpeg"), "-v", "error", "-i", str(folder / cue[2]), *cut]
        shown = subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout
        assert sum((gray > 128) << bit for bit, gray in enumerate(shown)) == number
    assert len(numbers(folder / "thumbnail.jpg")) == 1


def test_the_metadata_file_lists_what_is_published(clear: Results, root: Path) -> None:
    folder = root / "film"
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["contentId"], metadata["duration"], metadata["startTime"]) == ("film", 4.0, "2031-01-02T19:00:00.000Z")
    assert {file["name"] for file in metadata["files"]} == published(root) - {"metadata.json"}
    assert all((folder / file["name"]).stat().st_size == file["size"] for file in metadata["files"])
    server = ElementTree.parse(folder / "film.ism").getroot()
    tracks = [element for element in server.iter() if "src" in element.attrib]
    assert len(tracks) == 4
    assert all((folder / track.attrib["src"]).is_file() for track in tracks)
    assert clear["package"] == {
        "duration": 4.0,
        "thumbnail": "thumbnail.jpg",
        "playlists": ["clear/master.m3u8", "clear/manifest.mpd"],
        "drm": None,
    }


@pytest.mark.parametrize("scheme", ["cenc", "cbcs"])
def test_protected_content_is_shown_with_its_key_only(encrypted: Results, root: Path, scheme: str) -> None:
    file = root / "secret" / scheme / "video-96.mp4"
    decoded = ["-i", str(file), "-f", "rawvideo", "-"]
    without = subprocess.run([tool("ffmpeg"), "-v", "error", *decoded], capture_output=True, check=False)
    assert b"error" in without.stderr.lower(), "nothing can be decoded"
    plain = root.parent / f"{scheme}.mp4"
    subprocess.run(
        [tool("ffmpeg"), "-v", "error", "-y", "-decryption_key", KEY.hex(), "-i", str(file), "-c", "copy", str(plain)], check=True
    )
    assert numbers(plain) == list(range(100))
    assert BOX in file.read_bytes()
    manifest = (root / "secret" / scheme / "manifest.mpd").read_text()
    assert f'default_KID="{KID}"' in manifest
    assert b64encode(BOX).decode() in manifest
    assert b64encode(COMMON).decode() in manifest
    lines = (root / "secret" / scheme / "video-96.m3u8").read_text()
    assert f"METHOD={'SAMPLE-AES' if scheme == 'cbcs' else 'SAMPLE-AES-CTR'}" in lines
    assert (f'URI="{URI}",KEYFORMATVERSIONS="1",KEYFORMAT="com.apple.streamingkeydelivery"' in lines) == (scheme == "cbcs")
    assert "identity" not in lines


def test_nothing_of_protected_content_is_published_in_clear_and_no_key(encrypted: Results, root: Path) -> None:
    names = published(root, "secret")
    assert {name.rpartition("/")[0] for name in names} == {"", "cenc", "cbcs"}
    assert all(name in ("secret.mp4", "secret.ism", "metadata.json") or not is_withheld(name) for name in names)
    assert encrypted["package"]["drm"] == DRM
    assert all(form not in str(encrypted) for form in (KEY.hex(), b64encode(KEY).decode()))
    for name in names:
        content = (root / "secret" / name).read_bytes()
        assert all(form not in content for form in (KEY, KEY.hex().encode(), b64encode(KEY))), name
    assert 'src="cenc/video-96.mp4"' in (root / "secret/secret.ism").read_text()


async def test_what_the_packager_complains_of_shows_no_key(hosts: StepProcessPool, root: Path) -> None:
    async def odd(client: str, content_id: str) -> Protection:
        return Protection(KID.hex, KEY.hex()[:-2], IV.hex(), URI, PROTECTION.boxes, DRM)

    before = published(root, "secret")
    failed = await run(hosts, root, "vod_package", content_id="secret", protection=odd)
    assert isinstance(failed, StepFailure)
    assert failed.reason.startswith("packager: ")
    assert KEY.hex()[:-2] not in failed.reason
    assert published(root, "secret") == before


def picture(width: int, height: int) -> Picture:
    return Picture(0, "h264", width, height, 25.0, interlaced=False)


@pytest.mark.parametrize(
    ("size", "wanted", "sizes"),
    [
        ((1920, 1080), None, [(1920, 1080), (1280, 720), (852, 480), (640, 360), (426, 240)]),
        ((1920, 1072), None, [(1920, 1072), (1288, 720), (858, 480), (644, 360), (428, 240)]),
        ((720, 1280), None, [(720, 1280), (480, 852), (360, 640), (240, 426)]),
        ((640, 500), None, [(640, 500), (460, 360), (306, 240)]),
        ((127, 95), None, [(126, 94)]),
        ((7680, 4320), None, [(3840, 2160), (2560, 1440), (1920, 1080), (1280, 720), (852, 480), (640, 360), (426, 240)]),
        ((1280, 720), (1080, 720, 360), [(1280, 720), (640, 360)]),
        ((640, 360), (1080, 720), [(640, 360)]),
    ],
)
def test_a_ladder_begins_at_the_source(size: tuple[int, int], wanted: Any, sizes: list[tuple[int, int]]) -> None:
    made = ladder(picture(*size), wanted)
    assert [(rendition.width, rendition.height) for rendition in made] == sizes
    assert all(
        rendition.width <= size[0] and rendition.height <= size[1] and not (rendition.width | rendition.height) & 1
        for rendition in made
    )
    rates = [rendition.bit_rate for rendition in made]
    assert rates == sorted(rates, reverse=True)


def test_sheets_of_a_long_film_follow_each_other() -> None:
    sheets = Sheets(201, 160, 90)
    assert (sheets.columns, sheets.rows, sheets.count) == (10, 10, 3)
    cues = findall(r"(\S+) --> (\S+)\n(\S+)", sheets.webvtt([10.0 * number for number in range(201)], 2010.5))
    assert cues[0] == ("00:00:00.000", "00:00:10.000", "sprites-1.jpg#xywh=0,0,160,90")
    assert cues[111] == ("00:18:30.000", "00:18:40.000", "sprites-2.jpg#xywh=160,90,160,90")
    assert cues[200] == ("00:33:20.000", "00:33:30.500", "sprites-3.jpg#xywh=0,0,160,90")
