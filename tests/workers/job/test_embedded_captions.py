"""Captions within pictures (CEA-608 and CEA-708): found, kept in every rendition, and signalled in both manifests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.support.packages import run
from tests.support.sources.captioned import Line21, captioned, dtvcc, triples
from tests.support.sources.numbered_frames import film, probed
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

FRAMES = 150
CC1 = Line21("CC1").pop_on(50, "HELLO", "WORLD", until=75).roll_up(80, "ROLLING").pop_on(110, "BYE", until=130)
CC3 = Line21("CC3").pop_on(60, "BONJOUR", until=120)
BOTH = triples(FRAMES, CC1, CC3, services={50: dtvcc((1, "HELLO"), (2, "HOLA"))})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("captions") / "media"
    folder = root / "in"
    folder.mkdir(parents=True)
    captioned(folder / "h264.mp4", BOTH)
    captioned(folder / "h264.ts", BOTH)
    captioned(folder / "hevc.mkv", BOTH, codec="hevc")
    captioned(folder / "mpeg2.ts", BOTH, codec="mpeg2video")
    captioned(folder / "interlaced.ts", BOTH, codec="mpeg2video", coded=("-flags", "+ildct+ilme", "-top", "1"))
    captioned(folder / "silent.mp4", triples(FRAMES))
    film(folder / "plain.mp4", frames=50)
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("source", ["h264.mp4", "h264.ts", "hevc.mkv", "mpeg2.ts", "interlaced.ts"])
async def test_captions_of_a_source_are_in_all_renditions_and_both_manifests(
    hosts: StepProcessPool, root: Path, source: str
) -> None:
    content = source.replace(".", "-")
    spoken = {"CC1": "en", "CC3": "fr-CA", "SERVICE2": "es"}
    made = await run(
        hosts, root, "vod_ingest", content_id=content, file=f"in/{source}", renditions=(96, 48), caption_languages=spoken
    )
    assert not isinstance(made, StepFailure), made
    assert (made["captions"]["channels"], made["captions"]["services"]) == (["CC1", "CC3"], [1, 2])
    folder = root / content / "clear"
    for file in (root / content / f"{content}.mp4", *(folder / video["file"] for video in made["renditions"]["videos"])):
        assert pictures_with_captions(file) >= FRAMES - 2, file.name
    assert signalled_in_hls(folder) == {"CC1": "en", "CC3": "fr-CA", "SERVICE1": None, "SERVICE2": "es"}
    assert signalled_in_dash(folder) == {
        ("urn:scte:dash:cc:cea-608:2015", "CC1=eng"),
        ("urn:scte:dash:cc:cea-608:2015", "CC3=fra-CA"),
        ("urn:scte:dash:cc:cea-708:2015", "1=lang:und"),
        ("urn:scte:dash:cc:cea-708:2015", "2=lang:spa"),
    }


@pytest.mark.parametrize("source", ["silent.mp4", "plain.mp4"])
async def test_none_is_said_only_after_a_look(hosts: StepProcessPool, root: Path, source: str) -> None:
    """Pictures may carry the data without any text."""
    content = source.partition(".")[0]
    made = await run(hosts, root, "vod_ingest", content_id=content, file=f"in/{source}")
    assert not isinstance(made, StepFailure), made
    assert (made["captions"]["channels"], made["captions"]["services"]) == ([], [])
    assert "CLOSED-CAPTIONS=NONE" in (root / content / "clear/master.m3u8").read_text()
    assert signalled_in_dash(root / content / "clear") == set()


def pictures_with_captions(file: Path) -> int:
    frames = probed(file, "-select_streams", "v:0", "-show_entries", "frame_side_data=side_data_type")["frames"]
    return sum("ATSC A53" in str(frame) for frame in frames)


def signalled_in_hls(folder: Path) -> dict[str, str | None]:
    """Return the languages of closed captions by their ids. Every rendition refers to their group."""
    languages: dict[str, str | None] = {}
    for line in (folder / "master.m3u8").read_text().splitlines():
        name, _, values = line.partition(":")
        given: dict[str, Any] = dict(value.split("=", 1) for value in values.split(",") if "=" in value)
        if name == "#EXT-X-MEDIA" and given["TYPE"] == "CLOSED-CAPTIONS":
            assert given["GROUP-ID"] == '"CC"'
            language = given.get("LANGUAGE")
            languages[given["INSTREAM-ID"].strip('"')] = language and language.strip('"')
        if name == "#EXT-X-STREAM-INF":
            assert given["CLOSED-CAPTIONS"] == '"CC"'
    return languages


def signalled_in_dash(folder: Path) -> set[tuple[str | None, str | None]]:
    root = etree.parse(str(folder / "manifest.mpd")).getroot()
    adaptations = root.findall(".//{*}AdaptationSet[@contentType='video']/{*}Accessibility")
    return {(adaptation.get("schemeIdUri"), adaptation.get("value")) for adaptation in adaptations}
