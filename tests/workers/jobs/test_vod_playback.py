"""Packages in a real player: Shaka Player in Chromium shows the frames of the times that it is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.programs import program
from tests.shaka_player import shaka_player
from tests.workers.jobs.chromium import Page, opened
from tests.workers.jobs.counted import film, numbers
from tests.workers.jobs.packaging import run
from workers.jobs.protocol import Failed, Protection
from workers.jobs.step_process_pool import StepProcessPool

WIDTH, HEIGHT = 256, 192
TONES: Final = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4", "-f", "lavfi", "-i", "sine=frequency=880:duration=4")
TRACKS: Final = ("-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu")
CODED: Final = (
    "-vf",
    f"scale={WIDTH}:{HEIGHT}:flags=neighbor",
    "-c:v",
    "libx264",
    "-bf",
    "2",
    "-pix_fmt",
    "yuv420p",
    "-c:a",
    "aac",
)
KID, KEY = "22dac626328f8d21b3ffcd10e5b85d43", "000102030405060708090a0b0c0d0e0f"
COMMON = "0000003470737368010000001077efecc0b24d02ace33c1e52e2fb4b00000001" + KID + "00000000"
PROTECTION = Protection(KID, KEY, "1" * 32, "skd://a", {"cenc": COMMON, "cbcs": COMMON}, {})
SHOWN: Final = (3, 37, 51, 98)
SECONDS: Final = 120.0

Played = Callable[..., Awaitable[tuple[list[int], dict[str, Any]]]]


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film in clear, and the same with DRM."""
    root = tmp_path_factory.mktemp("playback") / "media"
    hosts = StepProcessPool(media_root=root, allow=[])
    await hosts.start()

    async def protection(client: str, content_id: str) -> Protection | None:
        return PROTECTION if content_id == "secret" else None

    try:
        for content in ("film", "secret"):
            (root / content).mkdir(parents=True)
            film(root / content / f"{content}.mp4", *TRACKS, *CODED, inputs=TONES)
            made = await run(hosts, root, "vod_package", content_id=content, renditions=(192, 96), protection=protection)
            assert not isinstance(made, Failed), made
    finally:
        await hosts.stop()
    return root


class Theatre:
    """Serves the page with the player, and looks at it whenever it says that it shows a picture."""

    def __init__(self, pictures: Path) -> None:
        self._pictures = pictures
        self.page: Page | None = None
        self.seen: list[int] = []
        self.ended: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def shown(self, request: web.Request) -> web.Response:
        """The screen follows the player some pictures later: what counts is what it comes to show."""
        wanted = SHOWN[len(self.seen)]
        self.seen.append(-1)
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS / 4):
                while self.seen[-1] != wanted:
                    self.seen[-1] = await self._number()
        return web.Response()

    async def _number(self) -> int:
        assert self.page is not None
        path = self._pictures / "picture.jpg"
        path.write_bytes(await self.page.picture(width=WIDTH, height=HEIGHT))
        [number] = numbers(path)
        return number

    async def end(self, request: web.Request) -> web.Response:
        await self.ended.put(json.loads(await request.text()))
        return web.Response()


@pytest.fixture(scope="module")
async def played(root: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    chromium, player = program("chromium"), shaka_player()
    theatre = Theatre(tmp_path_factory.mktemp("pictures"))

    async def give_page(request: web.Request) -> web.FileResponse:
        return web.FileResponse(Path(__file__).with_name("player.html"))

    async def give_player(request: web.Request) -> web.FileResponse:
        return web.FileResponse(player)

    app = web.Application()
    app.router.add_get("/player.html", give_page)
    app.router.add_get("/shaka-player.js", give_player)
    app.router.add_post("/shown", theatre.shown)
    app.router.add_post("/ended", theatre.end)
    app.router.add_static("/media", root)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    page = f"http://127.0.0.1:{runner.addresses[0][1]}/player.html"

    async def play(manifest: str, keys: Mapping[str, str] | None = None) -> tuple[list[int], dict[str, Any]]:
        """The numbers of the frames that were seen, and what the player says of the package."""
        asked = {"manifest": f"/media/{manifest}", "keys": keys or {}, "times": [(number + 0.5) / 25 for number in SHOWN]}
        home = tmp_path_factory.mktemp("profile")
        theatre.seen.clear()
        async with opened(chromium, "about:blank", home=home) as theatre.page:
            await theatre.page.go(f"{page}#{quote(json.dumps(asked))}")
            ended = await asyncio.wait_for(theatre.ended.get(), SECONDS)
        return list(theatre.seen), ended

    yield play
    await runner.cleanup()


@pytest.mark.parametrize("manifest", ["manifest.mpd", "master.m3u8"])
async def test_a_clear_package_plays(played: Played, manifest: str) -> None:
    seen, said = await played(f"film/clear/{manifest}")
    assert seen == list(SHOWN), said
    assert (said["languages"], said["heights"]) == (["de", "en"], [192, 96])
    assert said["duration"] == pytest.approx(4.0, abs=0.1)


async def test_a_protected_package_plays_with_its_key_only(played: Played) -> None:
    seen, said = await played("secret/cenc/manifest.mpd", {KID: KEY})
    assert seen == list(SHOWN), said
    seen, said = await played("secret/cenc/manifest.mpd")
    assert (seen, "error" in said) == ([], True)
