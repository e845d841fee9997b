"""The origin as a process: real encoders push to it, real players read from it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
from lxml import etree

from tests.e2e.origin.conftest import Live
from tests.e2e.origin.pushing import CMAF, FMP4, FRAMES, TS, Encoder, copied, two_renditions
from tests.support.product import Product
from tests.support.sources.numbered_frames import tool

ALL = list(range(FRAMES))
SMIL = "{http://www.w3.org/2001/SMIL20/Language}"


def probed(url: str) -> dict[str, Any]:
    shown = ["-show_entries", "stream=codec_type,width,height", "-of", "json", url]
    probe: dict[str, Any] = json.loads(subprocess.check_output([tool("ffprobe"), "-v", "error", *shown], text=True))
    return probe


def test_hls_in_fragments_of_two_sizes_with_separate_sound(origin: Product, film: Path, tmp_path: Path) -> None:
    live = Live(origin, "sizes")
    assert Encoder(film, two_renditions(live.url), token=live.token(7)).ended() == 0
    live.until_state("stopped")
    master = live.get("master.m3u8")
    assert master.headers["content-type"] == "application/vnd.apple.mpegurl"
    assert 'LANGUAGE="deu"' in master.text
    assert "RESOLUTION=128x96" in master.text
    assert "RESOLUTION=64x48" in master.text
    probe = probed(live.playable("master.m3u8"))["streams"]
    assert {(stream["codec_type"], stream.get("width")) for stream in probe} == {("video", 128), ("video", 64), ("audio", None)}
    for playlist in ("tracks/high-index.m3u8", "tracks/low-index.m3u8", "archive/master.m3u8"):
        assert live.shown(playlist) == ALL, playlist
    for manifest in ("manifest.mpd", "archive/manifest.mpd"):
        assert live.listed(manifest, tmp_path / "film.mp4") == ALL, manifest


def test_hls_in_transport_streams(origin: Product, film: Path) -> None:
    live = Live(origin, "ts")
    output = [*copied("0:v", "0:a"), *TS, "-http_persistent", "1", f"{live.url}/index.m3u8"]
    assert Encoder(film, output, token=live.token(1)).ended() == 0
    live.until_state("stopped")
    assert live.shown("tracks/index.m3u8") == ALL
    assert live.shown("master.m3u8") == ALL
    assert live.get("manifest.mpd").status_code == 404, "transport streams are not in DASH"


def test_streams_of_fragments(origin: Product, film: Path, tmp_path: Path) -> None:
    live = Live(origin, "cmaf")
    video = [*copied("0:v"), *CMAF, f"{live.url}/Streams(video.cmfv)"]
    audio = [*copied("0:a"), *CMAF, "-frag_duration", "1000000", f"{live.url}/Streams(audio.cmfa)"]
    assert Encoder(film, video, audio, token=live.token(1)).ended() == 0
    live.until_state("stopped")
    for playlist in ("tracks/video.m3u8", "master.m3u8"):
        assert live.shown(playlist) == ALL, playlist
    for manifest in ("manifest.mpd", "archive/manifest.mpd"):
        assert live.listed(manifest, tmp_path / "film.mp4") == ALL, manifest
    assert {stream["codec_type"] for stream in probed(live.playable("master.m3u8"))["streams"]} == {"video", "audio"}


def test_state_pages_tell_of_the_stream(origin: Product, film: Path) -> None:
    live = Live(origin, "state")
    assert [live.get(page).status_code for page in ("state", "archive", "status.php", "master.m3u8")] == [404] * 4
    first = [*copied("0:v"), *FMP4, f"{live.url}/index.m3u8"]
    encoder = Encoder(film, first, token=live.token(1), rate=1, loops=-1)
    try:
        live.until_state("started")
        page = live.get("status.php").json()
        assert page["receivingData"] is True
        for name in ("state", "archive"):
            answer = live.get(name)
            assert answer.headers["content-type"] == "application/smil+xml"
            state = {meta.get("name"): meta.get("content") for meta in etree.fromstring(answer.content).iter(f"{SMIL}meta")}
            assert state["state"] == "started"
            assert str(state["updated"]).endswith("Z")
    finally:
        encoder.kill()
    ended = httpx.delete(live.url, headers={"authorization": f"Bearer {live.token(1)}"}, timeout=60, verify=False)
    assert ended.status_code == 204
    assert live.get("status.php").json()["state"] == "stopped"
    assert "#EXT-X-ENDLIST" in live.get("tracks/index.m3u8").text
