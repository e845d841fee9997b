"""Shaka Player in Chromium: plays a manifest of any server, and its pictures are examined."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from tests.workers.job.chromium import Page, opened

WIDTH, HEIGHT = 256, 192
"""The size of the picture in the page, whatever size was coded."""
SECONDS: Final = 120.0


class Theatre:
    """Serves the page with the player, and examines it whenever it reports that it shows a picture.

    `read` returns the number that a picture (JPEG) shows; `files` are served as well.
    """

    def __init__(self, chromium: str, player: Path, *, files: Path, read: Callable[[bytes], int]) -> None:
        self._chromium = chromium
        self._player = player
        self._files = files
        self.read = read
        self._page: Page | None = None
        self._wanted: list[int] = []
        self._seen: list[int] = []
        self._again = False
        self._reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._address = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Theatre]:
        app = web.Application()
        app.router.add_get("/player.html", self._give_page)
        app.router.add_get("/shaka-player.js", self._give_player)
        app.router.add_post("/shown", self._shown)
        app.router.add_post("/told", self._tell)
        app.router.add_static("/media", self._files)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._address = f"http://127.0.0.1:{runner.addresses[0][1]}/player.html"
            yield self
        finally:
            await runner.cleanup()

    async def play(
        self, manifest: str, keys: Mapping[str, str] | None = None, *, shown: Sequence[tuple[int, float]], home: Path
    ) -> tuple[list[int], dict[str, Any]]:
        """Return the numbers of the frames that were seen, and the player's report on the manifest.

        `shown` are numbers with a time at which they should be visible. `home` is the browser's.
        """
        self._seen.clear()
        self._again = False
        self._wanted = [number for number, _ in shown]
        asked = {"manifest": manifest, "keys": keys or {}, "times": [time for _, time in shown]}
        async with self._asked(asked, home=home) as report:
            return list(self._seen), report

    @asynccontextmanager
    async def watch(self, manifest: str, *, home: Path) -> AsyncIterator[dict[str, Any]]:
        """Play a live stream while the context is open, and yield the player's report."""
        async with self._asked({"manifest": manifest, "live": True}, home=home) as report:
            yield report

    @asynccontextmanager
    async def _asked(self, asked: Mapping[str, object], *, home: Path) -> AsyncIterator[dict[str, Any]]:
        async with opened(self._chromium, "about:blank", home=home) as self._page:
            await self._page.go(f"{self._address}#{quote(json.dumps(asked))}")
            yield await asyncio.wait_for(self._reports.get(), SECONDS)

    async def number(self) -> int:
        """Return the number that the picture shows now."""
        assert self._page is not None
        return self.read(await self._page.picture(width=WIDTH, height=HEIGHT))

    async def _shown(self, request: web.Request) -> web.Response:
        """Note the picture that the player comes to show.

        The screen follows the player some pictures later. On a busy machine a paused browser may keep another picture on the
        screen: it is made to seek to the time again, once.
        """
        wanted, shown = self._wanted[len(self._seen)], -1
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS / 4):
                while shown != wanted:
                    shown = await self.number()
        self._again = shown != wanted and not self._again
        if not self._again:
            self._seen.append(shown)
        return web.json_response(self._again)

    async def _tell(self, request: web.Request) -> web.Response:
        await self._reports.put(json.loads(await request.text()))
        return web.Response()

    async def _give_page(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(Path(__file__).with_name("player.html"))

    async def _give_player(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(self._player)
