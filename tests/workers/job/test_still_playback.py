"""Packages of pictures that stand still, from start to end in hls.js, Shaka Player and dash.js in Chromium."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.support.npm_packages import npm_packages
from tests.support.packages import run
from tests.support.programs import program
from tests.support.sources import films
from tests.workers.job.chromium import opened
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

SECONDS: Final = 120.0
PLAYERS: Final = {
    "hls": "hls.js/dist/hls.min.js",
    "shaka": "shaka-player/dist/shaka-player.compiled.js",
    "dash": "dashjs/dist/modern/umd/dash.all.min.js",
}
Watch = Callable[[str, str], Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> Path:
    """Make a screen recording that stands still for ten seconds, and a lecture of three slides."""
    root = tmp_path_factory.mktemp("still") / "media"
    (root / "in").mkdir(parents=True)
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()
    try:
        for name, make in (("screen", films.still), ("slides", films.slides)):
            make(root / f"in/{name}.mp4")
            made = await run(hosts, root, "vod_ingest", content_id=name, file=f"in/{name}.mp4")
            assert not isinstance(made, StepFailure), made
    finally:
        await hosts.stop()
    return root


@pytest.fixture(scope="module")
async def watch(root: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watch]:
    chromium, packages = program("chromium"), npm_packages()
    reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def tell(request: web.Request) -> web.Response:
        await reports.put(json.loads(await request.text()))
        return web.Response()

    async def script(request: web.Request) -> web.FileResponse:
        return web.FileResponse(packages / PLAYERS[request.match_info["name"]])

    async def page(request: web.Request) -> web.FileResponse:
        return web.FileResponse(Path(__file__).with_name("through.html"))

    app = web.Application()
    app.add_routes([web.get("/through.html", page), web.get("/player/{name}.js", script), web.post("/told", tell)])
    app.router.add_static("/media", root)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/through.html"

    async def watched(player: str, manifest: str) -> dict[str, Any]:
        asked = quote(json.dumps({"player": player, "manifest": f"/media/{manifest}"}))
        async with opened(chromium, "about:blank", home=tmp_path_factory.mktemp("profile")) as browser:
            await browser.go(f"{address}#{asked}")
            return await asyncio.wait_for(reports.get(), SECONDS)

    try:
        yield watched
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("player", "manifest"), [("hls", "master.m3u8"), ("shaka", "master.m3u8"), ("shaka", "manifest.mpd"), ("dash", "manifest.mpd")]
)
@pytest.mark.parametrize("content", ["screen", "slides"])
async def test_a_still_picture_plays_through(watch: Watch, content: str, player: str, manifest: str) -> None:
    report = await watch(player, f"{content}/clear/{manifest}")
    assert report["faults"] == []
    assert report["seeks"] == 0, "the player jumps over nothing"
    assert report["duration"] == pytest.approx(16.0, abs=0.2)
    assert report["time"] == pytest.approx(16.0, abs=0.2)
    [(begin, end)] = report["buffered"]
    assert (begin, end) == pytest.approx((0.0, 16.0), abs=0.2)
