"""Captions in the pictures of a live stream: the origin finds them in the uploads, and announces them to players."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.clock import HandClock
from tests.support.sources import captioned
from tests.support.sources.captioned import Line21, dtvcc, triples
from tests.support.sources.films import ffmpeg
from tests.workers.origin.studio import ARCHIVE, LIVE, Studio, Track, master_playlist
from workers.media.captions.a53 import CaptionServices
from workers.media.captions.segments import segment_captions
from workers.media.fragments import read_init

FRAGMENTS = ("-map", "0:v", "-movflags", "+cmaf+delay_moov+frag_keyframe", "-f", "mp4")
SPOKEN = (Line21("CC1").pop_on(40, "HELLO"), Line21("CC3").roll_up(30, "HALLO"))
SERVICE = {20: dtvcc((1, "HELLO")), 21: dtvcc((2, "HALLO"))}


def film(folder: Path, data: Sequence[bytes], name: str, *, codec: str = "h264") -> Path:
    made = folder / "film.mp4"
    captioned.captioned(made, data, codec=codec)
    shown = folder / name
    tagged = ("-tag:v", "hvc1") if codec == "hevc" and name.endswith(".mp4") else ()
    ffmpeg("-i", str(made), "-c", "copy", *tagged, *(FRAGMENTS if name.endswith(".mp4") else ()), str(shown))
    return shown


@pytest.mark.parametrize(
    ("codec", "name"), [("h264", "a.mp4"), ("hevc", "a.mp4"), ("h264", "a.ts"), ("hevc", "a.ts"), ("mpeg2video", "a.ts")]
)
def test_captions_of_a_segment_are_found_in_every_form(tmp_path: Path, codec: str, name: str) -> None:
    """The pictures are coded in another order than they are shown."""
    path = film(tmp_path, triples(75, *SPOKEN, services=SERVICE), name, codec=codec)
    init = read_init(path.read_bytes()) if name.endswith(".mp4") else None
    assert segment_captions(path, init) == CaptionServices(("CC1", "CC3"), (1, 2))


def test_a_segment_without_captions_or_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    silent = film(tmp_path, triples(25), "a.mp4")
    init = read_init(silent.read_bytes())
    assert not segment_captions(silent, init)
    whole = film(tmp_path, triples(75, *SPOKEN), "b.mp4").read_bytes()
    for number, broken in enumerate((whole[: len(whole) // 2], b"GA94\x03" * 100, whole[:100] + b"GA94\x03", b"")):
        (path := tmp_path / f"{number}").write_bytes(broken)
        assert not segment_captions(path, init) or number == 0
        segment_captions(path, None)


def lines(playlist: str | None, tag: str) -> list[str]:
    return [line for line in (playlist or "").splitlines() if line.startswith(tag)]


async def test_players_are_told_of_captions_once_they_have_come(studio: Studio, clock: HandClock) -> None:
    picture, sound = Track(studio, "v0"), Track(studio, "a0")
    await studio.put("master.m3u8", master_playlist("v0"))
    for _ in range(2):
        await picture.send()
        await sound.send()
    assert lines(await studio.master(), "#EXT-X-STREAM-INF")
    assert "CLOSED-CAPTIONS" not in (await studio.master() or ""), "they may still begin: NONE would not be true"
    assert "Accessibility" not in (await studio.manifest() or "")
    await picture.send(data=sample())
    await sound.send()
    master = await studio.master()
    assert lines(master, "#EXT-X-MEDIA:TYPE=CLOSED") == [
        '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",NAME="CC1",INSTREAM-ID="CC1",DEFAULT=YES,AUTOSELECT=YES'
    ]
    assert all(line.endswith(',CLOSED-CAPTIONS="captions"') for line in lines(master, "#EXT-X-STREAM-INF"))
    matches = re.findall(
        r'<AdaptationSet id="\d" contentType="(\w+)"[^>]*>\s*<Accessibility ([^>]*)/>', await studio.manifest() or ""
    )
    assert matches == [("video", 'schemeIdUri="urn:scte:dash:cc:cea-608:2015" value="CC1=und"')]
    assert "CLOSED-CAPTIONS" in (await studio.master(ARCHIVE) or "")
    await picture.send()
    again = Studio(studio.root, clock)
    assert await again.master(LIVE) == await studio.master(LIVE), "another process knows it too"
    assert lines((studio.root / "news/1/t-v0/index.jsonl").read_text(), '{"captions"') == ['{"captions":[["CC1"],[]]}']


def sample() -> bytes:
    """Return a picture whose data hold a whole caption."""
    pairs = b"\x14\x20\x14\x70HELLO\x20\x14\x2f"
    body = b"".join(bytes((0xFC, pairs[at], pairs[at + 1])) for at in range(0, len(pairs), 2))
    message = b"\xb5\x00\x31GA94\x03" + bytes((0xC0 | len(pairs) // 2, 0xFF)) + body + b"\xff"
    unit = b"\x06" + bytes((4, len(message))) + message + b"\x80"
    return len(unit).to_bytes(4, "big") + unit
