"""A test picture goes on the air by the schedule, is watched in a browser, stops, and is watched again as a film, with one `up`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from domain.kernel.clock import iso, system_clock
from tests.contract.encoder.ffmpeg_stage import children
from tests.e2e.on_air import Station, captured, frame_numbers
from tests.e2e.processes import alive
from tests.support.npm_packages import shaka_player
from tests.support.product import Product, Products, client, migrated_home
from tests.support.programs import program
from tests.support.waiting import until
from tests.workers.job.theatre import Theatre

KEY = "the-admin-key-of-these-tests"
LIVE, STOPPED = 2, 4
FPS = 25
MANIFESTS = ("master.m3u8", "manifest.mpd")


@pytest.fixture
def product(started: Products, tmp_path: Path) -> Product:
    return started.start(migrated_home(tmp_path / "home"), admin_api_key=KEY).until_ready()


@pytest.fixture
def http(product: Product) -> Iterator[httpx.Client]:
    with client(product, KEY) as made:
        yield made


async def test_a_test_picture_is_watched_live_and_afterwards(
    product: Product, http: httpx.Client, tmp_path: Path, thorough: bool
) -> None:
    """Without the browser everything but the watching is tested, and the run reports that.

    The picture is watched live as HLS and afterwards as DASH; a thorough run watches both each time.
    """
    live, film = (MANIFESTS, MANIFESTS) if thorough else (MANIFESTS[:1], MANIFESTS[1:])
    news = Station(http, "news", home=product.home)
    event = news.event(autoStart=True, autoPublish=True, scheduledStart=iso(system_clock() + timedelta(seconds=10)))
    assert news.health(event) == []
    until(lambda: [(point["state"], point["receivingData"]) for point in news.health(event)] == [("started", True)] * 2)
    async with _theatre(tmp_path) as theatre:
        if theatre is not None:
            for manifest in live:
                await _moves(theatre, f"{news.url}/{manifest}", home=tmp_path / manifest)

        news.to_state(event, STOPPED)
        until(lambda: (news.state(), news.state("-b")) == ("stopped", "stopped"))
        sent = (news.pictures(), news.pictures("-b"))
        assert sent[0] == sent[1]
        assert len(news.sessions()) == 1
        film_file = captured(http, event, to=tmp_path / "film.mp4")
        assert (news.pictures(), news.pictures("-b")) == sent, "something was sent after the stop"
        assert not children("ffmpeg", of=product.process.pid)

        numbers = frame_numbers(film_file)
        assert numbers == list(range(len(numbers))), "it is not whole"
        assert len(numbers) >= FPS * 5
        if theatre is None:
            program("chromium"), shaka_player()
        else:
            await _plays(theatre, f"{product.address}/media/{event}/clear", film, numbers=numbers, homes=tmp_path)


@asynccontextmanager
async def _theatre(folder: Path) -> AsyncIterator[Theatre | None]:
    """Yield a theatre; None if a program for it is missing."""
    try:
        chromium, player = program("chromium"), shaka_player()
    except pytest.skip.Exception:
        yield None
        return
    picture = folder / "picture.jpg"

    def read(taken: bytes) -> int:
        picture.write_bytes(taken)
        [number] = frame_numbers(picture)
        return number

    async with Theatre(chromium, player, files=folder, read=read).open() as theatre:
        yield theatre


async def _moves(theatre: Theatre, manifest: str, *, home: Path) -> None:
    """Check that the picture advances for three seconds of the encoder."""
    async with theatre.watch(manifest, home=home) as report:
        assert report.get("live"), report
        seen = [await theatre.number()]
        async with asyncio.timeout(120):
            while seen[-1] < seen[0] + 3 * FPS:
                seen.append(await theatre.number())
        assert seen == sorted(seen)


async def _plays(theatre: Theatre, package: str, manifests: Sequence[str], *, numbers: list[int], homes: Path) -> None:
    """Check a frame near the start, one in the middle and one near the end."""
    assert await asyncio.to_thread(frame_numbers, f"{package}/{MANIFESTS[0]}") == numbers
    shown = [(numbers[at], (at + 0.5) / FPS) for at in (3, len(numbers) // 2, len(numbers) - 5)]
    for manifest in manifests:
        seen, report = await theatre.play(f"{package}/{manifest}", shown=shown, home=homes / f"film-{manifest}")
        assert seen == [number for number, _ in shown], report


@pytest.mark.long
def test_it_is_on_the_air_again_after_a_kill_and_leaves_nothing_behind(started: Products, tmp_path: Path) -> None:
    """The Event is live all the time: no client requests anything after the start."""
    home = tmp_path / "home"
    product = started.start(migrated_home(home), admin_api_key=KEY).until_ready()
    with client(product, KEY) as http:
        news = Station(http, "news", home=product.home)
        news.to_state(news.event(), LIVE)
        until(lambda: len(news.pictures()) >= 2 and len(news.pictures("-b")) >= 2)
        encoders = children("ffmpeg", of=product.process.pid)
        product.kill()
        until(lambda: not any(alive(encoder) for encoder in encoders))

        again = started.start(home, admin_api_key=KEY, port=product.address.rpartition(":")[2]).until_ready()
        until(lambda: len(news.sessions()) == 2)
        first, second = news.sessions()
        assert second > first
        encoders = children("ffmpeg", of=again.process.pid)
        assert encoders
        again.signal(signal.SIGINT)
        assert again.ended() == 0
        assert not any(alive(encoder) for encoder in encoders)
