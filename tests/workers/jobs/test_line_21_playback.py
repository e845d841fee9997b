"""CEA-608 captions of pictures, offered as text: hls.js and Shaka Player in Chromium show them at their times."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.programs import program
from tests.sources.captioned import Line21, captioned, triples
from tests.workers.jobs.chromium import opened
from tests.workers.jobs.packaging import run
from tests.workers.jobs.test_text_playback import PLAYERS, SECONDS, Screening
from workers.jobs.protocol import Failed
from workers.jobs.step_process_pool import StepProcessPool
from workers.kernel.forked import ForkServer

SHOWN = ((2.2, "HELLO"), (2.9, "HELLO"), (3.2, ""), (5.3, "BYE"), (5.8, "BYE"))


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> Path:
    """A film of eight seconds with two captions in its pictures."""
    root = tmp_path_factory.mktemp("line21") / "media"
    (root / "in").mkdir(parents=True)
    captions = Line21().pop_on(50, "HELLO", until=75).pop_on(125, "BYE", until=150)
    captioned(root / "in/film.mp4", triples(200, captions))
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()
    try:
        made = await run(hosts, root, "vod_ingest", file="in/film.mp4", caption_languages={"CC1": "en"})
        assert not isinstance(made, Failed), made
    finally:
        await hosts.stop()
    return root


@pytest.mark.parametrize("player", ["hls", "shaka"])
async def test_captions_of_pictures_are_on_the_screen_at_their_times(root: Path, player: str, tmp_path: Path) -> None:
    screening = Screening(root)
    await screening.runner.setup()
    try:
        await web.TCPSite(screening.runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{screening.runner.addresses[0][1]}"
        source, manifest = PLAYERS[player]
        asked = {
            "player": player.split()[0],
            "script": f"/players/{source}",
            "manifest": f"/media/film/clear/{manifest}",
            "expected": {"en": SHOWN},
        }
        async with opened(program("chromium"), "about:blank", home=tmp_path / "profile") as page:
            await page.go(f"{address}/pages/texts.html#{quote(json.dumps(asked))}")
            told = await asyncio.wait_for(screening.told.get(), SECONDS)
    finally:
        await screening.runner.cleanup()
    assert "error" not in told, told
    assert list(told["texts"]["en"]) == [text for _, text in SHOWN]
