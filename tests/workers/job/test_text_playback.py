"""Texts of a film in real players: in Chromium, hls.js, Shaka Player and dash.js show each cue at its time, in five languages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from aiohttp import web

from domain.asset.values import CaptionKind
from tests.support.npm_packages import npm_packages
from tests.support.packages import run
from tests.support.programs import program
from tests.support.sources.numbered_frames import film
from tests.workers.job.chromium import opened
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer
from workers.media.captions.tracks import TextTrack

LANGUAGES: Final = {
    "de": (CaptionKind.CAPTIONS, "Deutsch", "Grüße"),
    "en-GB": (CaptionKind.SUBTITLES, "English", "Greetings"),
    "ja": (CaptionKind.SUBTITLES, "日本語", "挨拶"),
    "ar": (CaptionKind.DESCRIPTIONS, "العربية", "تحية"),
    "fr": (CaptionKind.FORCED, "Français", "Salut & bonjour"),
}
TRACKS: Final = [
    TextTrack(name=name, language=language, kind=kind, stem=f"{language}.{kind.value}")
    for language, (kind, name, _) in LANGUAGES.items()
]
PLAYERS: Final = {
    "hls": ("hls.js/dist/hls.js", "master.m3u8"),
    "shaka over hls": ("shaka-player/dist/shaka-player.compiled.js", "master.m3u8"),
    "shaka": ("shaka-player/dist/shaka-player.compiled.js", "manifest.mpd"),
    "dash": ("dashjs/dist/modern/umd/dash.all.debug.js", "manifest.mpd"),
}
SECONDS: Final = 240.0


def srt(word: str) -> str:
    return (
        f"1\n00:00:01,000 --> 00:00:02,000\n<i>{word}</i> 1\n\n2\n00:00:05,500 --> 00:00:06,500\n{word} 2\n\n"
        f"3\n00:00:07,000 --> 00:00:07,900\n{word} 3\n"
    )


def shown(word: str) -> Sequence[tuple[float, str]]:
    """List the texts that are shown at times near the borders of cues.

    The second cue is shown over the border of two segments. A time without text comes after one that proves that its segment is
    there.
    """
    return (
        *((1.1, f"{word} 1"), (1.9, f"{word} 1"), (2.1, ""), (0.9, "")),
        *((5.6, f"{word} 2"), (6.4, f"{word} 2"), (6.6, ""), (5.4, ""), (7.1, f"{word} 3"), (6.9, "")),
    )


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> Path:
    """Make a film of eight seconds with texts in five languages."""
    root = tmp_path_factory.mktemp("texts") / "media"
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()
    try:
        (root / "film").mkdir(parents=True)
        (root / "in").mkdir()
        film(root / "film/film.mp4", "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p", frames=200)

        async def tracks(content: str) -> Sequence[TextTrack]:
            return TRACKS

        made = await run(hosts, root, "vod_package", renditions=(96,), tracks=tracks)
        assert not isinstance(made, StepFailure), made
        for track in TRACKS:
            (root / "in/text.srt").write_text(srt(LANGUAGES[track.language][2]))
            made = await run(hosts, root, "captions", name=track.file, file="in/text.srt")
            assert not isinstance(made, StepFailure), made
    finally:
        await hosts.stop()
    return root


class Screening:
    """Serves a film with the players, and receives the reports of a page."""

    def __init__(self, root: Path) -> None:
        self.reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.address = ""
        app = web.Application()
        app.router.add_post("/told", self._tell)
        app.router.add_static("/media", root)
        app.router.add_static("/players", npm_packages())
        app.router.add_static("/pages", Path(__file__).parent)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)

    async def watch(self, player: str, *, home: Path) -> dict[str, Any]:
        """Return the report of a page that shows all languages, or the reports of all pages if each language has its own."""
        languages = [[language] for language in LANGUAGES] if player == "dash" else [list(LANGUAGES)]
        reports = [await self._watched(player, shows, home=home / shows[0]) for shows in languages]
        return {**reports[0], "texts": {name: texts for report in reports for name, texts in report.get("texts", {}).items()}}

    async def _watched(self, player: str, languages: Sequence[str], *, home: Path) -> dict[str, Any]:
        source, manifest = PLAYERS[player]
        asked = {
            "player": player.split()[0],
            "script": f"/players/{source}",
            "manifest": f"/media/film/clear/{manifest}",
            "expected": {language: shown(LANGUAGES[language][2]) for language in languages},
        }
        async with opened(program("chromium"), "about:blank", home=home) as page:
            await page.go(f"{self.address}/pages/texts.html#{quote(json.dumps(asked))}")
            return await asyncio.wait_for(self.reports.get(), SECONDS)

    async def _tell(self, request: web.Request) -> web.Response:
        await self.reports.put(json.loads(await request.text()))
        return web.Response()


@pytest.fixture(scope="module")
async def screening(root: Path) -> AsyncIterator[Screening]:
    screening = Screening(root)
    await screening.runner.setup()
    await web.TCPSite(screening.runner, "127.0.0.1", 0).start()
    screening.address = f"http://127.0.0.1:{screening.runner.addresses[0][1]}"
    yield screening
    await screening.runner.cleanup()


@pytest.mark.parametrize("player", PLAYERS)
async def test_each_cue_is_on_the_screen_at_its_time(screening: Screening, player: str, tmp_path: Path) -> None:
    report = await screening.watch(player, home=tmp_path / "profile")
    assert "error" not in report, report
    assert {language: list(texts) for language, texts in report["texts"].items()} == {
        language: [text for _, text in shown(word)] for language, (_, _, word) in LANGUAGES.items()
    }
    assert {track["language"]: track["name"] for track in report["tracks"]} == {
        expected_track.language: expected_track.name for expected_track in TRACKS
    }
    cues = {track["language"]: track["said"] for track in report["tracks"]}
    if player == "hls":
        assert {language for language, text in cues.items() if "transcribes-spoken-dialog" in text} == {"de"}
        assert [track["language"] for track in report["tracks"] if track["forced"]] == ["fr"]
    elif "over" not in player:
        roles = {"de": "caption", "en-GB": "subtitle", "ja": "subtitle", "ar": "description", "fr": "forced-subtitle"}
        assert {language: role for language, role in cues.items() if role} == roles
