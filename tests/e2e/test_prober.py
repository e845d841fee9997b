"""Publishing points with real processes: each is sampled by one of them however the others end, and no stale sample is shown."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import httpx
import psycopg
import pytest

from domain.kernel.clock import iso, system_clock
from tests.support.product import Product, Products, client
from tests.support.waiting import until
from tests.workers.health.point_server import PointServer, answers, smil

KEY = "the-admin-key-of-these-tests"
CHANNELS = 12
TOO_SOON = 1.5
"""Seconds. The first two samples are 2 s apart, all others 5 s."""
OVERLAP = 2 * CHANNELS
"""Samples that may be taken twice when a member is frozen: those under way at that moment, one for each point at most."""


class Streaming(Thread):
    """A streaming server in a thread, with all its points on the air. `times` are those of the requests, by path."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.times: Mapping[str, list[float]] = defaultdict(list)
        self._loop = asyncio.new_event_loop()
        self.url = ""

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def serve(self) -> PointServer:
        server = PointServer()
        for number in range(CHANNELS):
            for place in "ab":
                server.pages[f"/{number}{place}/archive"] = self._page(f"/{number}{place}")
        return await server.__aenter__()

    def begin(self) -> None:
        self.start()
        self._server = asyncio.run_coroutine_threadsafe(self.serve(), self._loop).result()
        self.url = self._server.url

    def end(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.__aexit__(None, None, None), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _page(self, path: str) -> Any:
        async def page(out: asyncio.StreamWriter) -> None:
            self.times[path].append(monotonic())
            await answers(smil("started", iso(system_clock())))(out)

        return page

    def sampled(self, since: float) -> int:
        """Return the number of points that were sampled since this time."""
        return sum(1 for times in list(self.times.values()) if times and times[-1] > since)

    def too_soon(self) -> list[tuple[str, float]]:
        return [
            (path, later - earlier)
            for path, times in list(self.times.items())
            for earlier, later in pairwise(list(times))
            if later - earlier < TOO_SOON
        ]


@pytest.fixture
def streaming() -> Iterator[Streaming]:
    made = Streaming()
    made.begin()
    yield made
    made.end()


def live(http: httpx.Client, url: str, number: int) -> str:
    places = ("primaryPublishingPoint", "secondaryPublishingPoint")
    points = {place: {"publishingPointUrl": f"{url}/{number}{letter}"} for place, letter in zip(places, "ab", strict=True)}
    text = json.dumps({"encoders": [{"streamingServer": {"streamingServerSpecific": points}}]})
    channel = http.post("/api/channel/", json={"name": f"{number}", "configurationJson": text}).raise_for_status().json()["id"]
    event = http.post("/api/event/", json={"channelId": channel}).raise_for_status().json()["id"]
    http.put(f"/api/event/state/{event}", json={"state": 2}).raise_for_status()
    return str(event)


@pytest.mark.long
def test_points_are_sampled_once_in_an_interval_however_the_probers_end(
    started: Products, tmp_path: Path, own_database: str, streaming: Streaming
) -> None:
    home = tmp_path / "home"
    settings = {"database_url": own_database, "outbound_allow": "127.0.0.0/8"}

    def prober() -> Product:
        return started.start(home, "workers prober", **settings)

    def shards() -> Sequence[int]:
        rows = connection.execute(
            "SELECT count(*) FROM consumer_shards WHERE consumer = 'prober' AND held_until > clock_timestamp() GROUP BY owner"
        ).fetchall()
        return sorted(count for (count,) in rows)

    def statuses() -> set[int]:
        return {http.get("/api/health/live/stream/", params={"checkForErrors": "true"}).status_code}

    def all_sampled() -> None:
        since = monotonic()
        until(lambda: streaming.sampled(since) == 2 * CHANNELS)

    api = started.start(home, "api", admin_api_key=KEY, **settings).until_ready()
    with closing(psycopg.connect(own_database, autocommit=True)) as connection, client(api, KEY) as http:
        for number in range(CHANNELS):
            live(http, streaming.url, number)
        assert statuses() == {415}
        first, second = prober(), prober()
        until(lambda: shards() == [8, 8])
        until(lambda: statuses() == {200})
        all_sampled()
        assert streaming.too_soon() == []

        first.signal(signal.SIGSTOP)
        until(lambda: shards() == [16])
        all_sampled()
        first.signal(signal.SIGCONT)
        until(lambda: shards() == [8, 8])
        all_sampled()
        assert statuses() == {200}
        assert len(streaming.too_soon()) <= OVERLAP, streaming.too_soon()

        second.kill()
        until(lambda: shards() == [16])
        all_sampled()
        assert statuses() == {200}
        assert len(streaming.too_soon()) <= OVERLAP, streaming.too_soon()

        first.signal(signal.SIGSTOP)
        until(lambda: statuses() == {415})
        shown = http.get("/api/health/live/stream/").raise_for_status().json()
        until(lambda: {url["state"] for url in _urls(http.get("/api/health/live/stream/").json())} == {"unknown"})
        assert len(shown) == CHANNELS
        first.signal(signal.SIGCONT)
        until(lambda: statuses() == {200})


def _urls(shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for event in shown.values():
        yield from event["urls"]
