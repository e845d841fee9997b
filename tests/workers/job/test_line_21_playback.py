"""A film with five subtitle tracks and captions in its pictures: in Chromium, hls.js, Shaka Player and dash.js show each of them at
its times, and the captions both as a separate text and out of the pictures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.support.packages import run
from tests.support.programs import program
from tests.support.sources.captioned import Line21, captioned, triples
from tests.workers.job.chromium import opened
from tests.workers.job.sources import ffmpeg
from tests.workers.job.test_text_playback import PLAYERS, SECONDS, Screening, srt
from tests.workers.job.test_text_playback import screening as screening
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

EMBEDDED: Final = "CC1"
SPOKEN: Final = {
    "ger": ("de", "Hallo"),
    "eng": ("en", "Hello"),
    "jpn": ("ja", "今日は"),
    "ara": ("ar", "مرحبا"),
    "fre": ("fr", "Bonjour"),
}
CAPTIONS: Final = ((2.2, "HELLO"), (2.9, "HELLO"), (3.2, ""), (5.3, "BYE"), (5.8, "BYE"))
EXPECTED: Final[Mapping[str, Sequence[tuple[float, str]]]] = {
    **{
        tag: ((1.1, f"{word} 1"), (1.9, f"{word} 1"), (2.1, ""), (5.6, f"{word} 2"), (7.1, f"{word} 3"))
        for tag, word in SPOKEN.values()
    },
    "es": CAPTIONS,
    EMBEDDED: CAPTIONS,
}


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> Path:
    """Make a film of eight seconds with subtitles in five languages, and two captions in its pictures."""
    root = tmp_path_factory.mktemp("line21") / "media"
    folder = root / "in"
    folder.mkdir(parents=True)
    captions = Line21().pop_on(50, "HELLO", until=75).pop_on(125, "BYE", until=150)
    captioned(folder / "captioned.mp4", triples(200, captions))
    options: list[str] = []
    for number, (language, (tag, word)) in enumerate(SPOKEN.items()):
        (folder / f"{tag}.srt").write_text(srt(word))
        options += [f"-metadata:s:s:{number}", f"language={language}"]
    files = [option for tag, _ in SPOKEN.values() for option in ("-i", str(folder / f"{tag}.srt"))]
    maps = [option for number in range(len(SPOKEN) + 1) for option in ("-map", str(number))]
    ffmpeg("-i", str(folder / "captioned.mp4"), *files, *maps, "-c:v", "copy", "-c:a", "copy", *options, str(folder / "film.mkv"))
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()
    try:
        made = await run(hosts, root, "vod_ingest", file="in/film.mkv", caption_languages={EMBEDDED: "es"})
        assert not isinstance(made, StepFailure), made
    finally:
        await hosts.stop()
    return root


@pytest.mark.parametrize("player", PLAYERS)
async def test_each_text_is_on_the_screen_at_its_times(screening: Screening, player: str, tmp_path: Path) -> None:
    """Shaka Player is asked only for the captions in the pictures over HLS; `test_text_playback` asks it for the other texts."""
    source, manifest = PLAYERS[player]
    expected = {EMBEDDED: CAPTIONS} if "over" in player else EXPECTED
    pages = [[track] for track in expected] if player == "dash" else [list(expected)]
    shown: dict[str, Any] = {}
    for tracks in pages:
        asked = {
            "player": player.split()[0],
            "script": f"/players/{source}",
            "manifest": f"/media/film/clear/{manifest}",
            "expected": {track: expected[track] for track in tracks},
            "language": "fr" if tracks == [EMBEDDED] else None,
        }
        async with opened(program("chromium"), "about:blank", home=tmp_path / tracks[0]) as page:
            await page.go(f"{screening.address}/pages/texts.html#{quote(json.dumps(asked))}")
            reports = await asyncio.wait_for(screening.reports.get(), SECONDS)
        assert "error" not in reports, reports
        shown |= reports["texts"]
    assert shown == {track: [text for _, text in texts] for track, texts in expected.items()}
