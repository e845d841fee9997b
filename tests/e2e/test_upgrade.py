"""The upgrade of docs/how-to/upgrade.md with two builds: the older one serves under writes, the newer one starts next to it and
takes over."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

import httpx
import psycopg
import pytest

from projections.event.view import EVENT_VIEW
from projections.kernel.schema.builds import BUILD
from tests.e2e.newer_build import newer_build
from tests.support.postgres import Logins, two_logins
from tests.support.product import Product, Products, client
from tests.support.waiting import until

KEY = "a-key-of-an-operator"
JSON_PATCH = {"content-type": "application/json-patch+json"}
VERSION = "SELECT version FROM view_versions WHERE name = 'event_view'"


@pytest.fixture
def logins(postgres: str) -> Iterator[Logins]:
    with two_logins(postgres, "upgraded") as made:
        yield made


class Traffic:
    """Writes through one process after the other, and reads each write through all of them as soon as it is answered."""

    def __init__(self, *through: httpx.Client) -> None:
        self._through = list(through)
        self._round = Lock()
        self._stopped = Event()
        self.written: dict[str, str] = {}

    def join(self, http: httpx.Client) -> None:
        with self._round:
            self._through.append(http)

    def leave(self, http: httpx.Client) -> None:
        with self._round:
            self._through.remove(http)

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.wait(0.01):
            with self._round:
                self._write()

    def _write(self) -> None:
        for writer in self._through:
            title = f"title {len(self.written)}"
            event = writer.post("/api/event/", json={"title": "new"}).raise_for_status().json()["id"]
            for other in self._through:
                patch(other, event, title=f"{title} by {other.base_url.port}")
                shown = [reader.get(f"/api/event/{event}").raise_for_status().json()["title"] for reader in self._through]
                assert set(shown) == {f"{title} by {other.base_url.port}"}
                self.written[event] = shown[0]


def patch(http: httpx.Client, event: str, **fields: str) -> httpx.Response:
    steps = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in fields.items()]
    return http.patch(f"/api/event/{event}", json=steps, headers=JSON_PATCH).raise_for_status()


def fetch(url: str, question: str) -> Sequence[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question.encode()).fetchall()


@pytest.mark.long
def test_a_newer_build_takes_over_under_writes_and_nothing_is_lost(started: Products, logins: Logins, tmp_path: Path) -> None:
    home, database = tmp_path / "home", logins.owner
    settings = {"database_url": logins.product, "owner_database_url": logins.owner, "admin_api_key": KEY}
    started.migrate(home, **settings)
    old = started.start(home, "api", **settings).until_ready()
    tree = newer_build(tmp_path / "tree")
    with client(old, KEY) as before, ThreadPoolExecutor(1) as threads:
        traffic = Traffic(before)
        running = threads.submit(traffic.run)
        try:
            new = started.start_from(tree, home, "api", **settings).until_ready()
            with client(new, KEY) as after:
                traffic.join(after)
                event = _both_serve(before, after, database)
                count = len(traffic.written)
                until(lambda: len(traffic.written) > count + 10 or running.done())
                traffic.leave(before)
                old.signal(signal.SIGTERM)
                assert old.ended() == 0
                until(
                    lambda: (
                        fetch(database, "SELECT version FROM view_versions WHERE name = 'event_view'") != [(EVENT_VIEW.version,)]
                    )
                )
                count = len(traffic.written)
                until(lambda: len(traffic.written) > count + 10 or running.done())
                traffic.stop()
                running.result(timeout=120)
                _nothing_is_lost(after, traffic, event)
        finally:
            traffic.stop()
    assert fetch(database, "SELECT build FROM min_build") == [(BUILD + 1,)]
    _the_view_is_what_the_log_says(started, home, tree, settings)
    refused = started.start(home, "api", **settings)
    assert refused.ended() == 1
    assert refused.errors.splitlines()[-1].startswith(
        f"medialedger: this is build {BUILD}, and the database needs build {BUILD + 1}"
    )
    assert len(refused.errors.splitlines()) == 1
    assert new.process.poll() is None


def _both_serve(before: httpx.Client, after: httpx.Client, database: str) -> str:
    """Check that the older build leaves unknown data alone, and refuses to decide on it."""
    event = str(after.post("/api/event/", json={"title": "Final", "sponsor": "Acme"}).raise_for_status().json()["id"])
    assert after.get("/api/event/reference", params={"id": "Acme"}).raise_for_status().json()["sponsor"] == "Acme"
    patch(before, event, title="Semifinal")
    assert after.get(f"/api/event/{event}").json()["title"] == "Semifinal"
    patch(after, event, rating="12")
    assert after.get(f"/api/event/{event}").json()["rating"] == "12"
    assert before.get(f"/api/event/{event}").json()["title"] == "Semifinal"
    steps = [{"op": "replace", "path": "/title", "value": "Quarterfinal"}]
    refused = before.patch(f"/api/event/{event}", json=steps, headers=JSON_PATCH)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    builds = fetch(database, "SELECT build FROM builds ORDER BY build")
    assert builds == [(BUILD,), (BUILD + 1,)]
    assert fetch(database, VERSION) == [(EVENT_VIEW.version,)]
    return event


def _nothing_is_lost(after: httpx.Client, traffic: Traffic, event: str) -> None:
    assert len(traffic.written) > 20
    for written, title in traffic.written.items():
        assert after.get(f"/api/event/{written}").json()["title"] == title
    reference = after.get("/api/event/reference", params={"id": "Acme"}).raise_for_status().json()
    assert (reference["id"], reference["title"], reference["sponsor"], reference["rating"]) == (
        event,
        "Semifinal",
        "Acme",
        "12",
    )
    assert after.get("/api/audit/verify").json()["valid"]


def _the_view_is_what_the_log_says(started: Products, home: Path, tree: Path, settings: dict[str, str]) -> None:
    url = settings["owner_database_url"]
    question = "SELECT v::text FROM event_view v ORDER BY id"
    live = fetch(url, question)
    assert len(live) > 20
    rebuild: Product = started.start_from(tree, home, "projections rebuild event", **settings)
    assert rebuild.ended() == 0, rebuild.errors
    assert fetch(url, question) == live
