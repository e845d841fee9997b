"""The README's journey with real processes: from the first start to the last answer before a stop, and on the same data again."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from select import select
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.support.product import Product, Products, client, migrated_home, products
from tests.support.waiting import until
from workers.adapters.embedded_postgres import EmbeddedPostgres

KEY = "the-admin-key-of-these-tests"
LIVE, STOPPED = 2, 4
JSON_PATCH = {"Content-Type": "application/json-patch+json"}


def title(text: str) -> list[dict[str, str]]:
    return [{"op": "replace", "path": "/title", "value": text}]


def test_from_schedule_to_live_to_stopped_and_back_to_an_earlier_version(started: Products, tmp_path: Path) -> None:
    home = tmp_path / "home"
    product = started.start(home).until_ready()
    with client(product, (home / "admin-api-key").read_text().strip()) as http:
        assert http.get("/readyz").json()["status"] == "ok"
        room = http.post("/api/room/", json={"name": "Studio 1"}).raise_for_status().json()
        planned = {"title": "Derby", "roomId": room["Id"], "scheduledStart": "2031-01-02T20:00:00Z"}
        event = http.post("/api/event/", json=planned).raise_for_status().json()
        path = f"/api/event/{event['id']}"
        http.put(f"/api/event/state/{event['id']}", json={"state": "LIVE_PUBLISHED"}).raise_for_status()
        assert http.get(path).json()["state"] == LIVE
        http.patch(path, json=title("Derby, live"), headers=JSON_PATCH).raise_for_status()
        http.put(f"/api/event/state/{event['id']}", json={"state": STOPPED}).raise_for_status()
        shown = http.get(path).text
        now = http.get(path).json()
        assert (now["state"], now["title"]) == (STOPPED, "Derby, live")
        history = http.get(f"/api/audit/event/{event['id']}/").json()
        assert [entry["type"] for entry in history] == [
            "event.registered",
            "event.state_changed",
            "event.described",
            "event.state_changed",
        ]
        then = http.get(f"/api/audit/event/{event['id']}/state", params={"version": 2}).json()
        assert (then["version"], then["state"]["state"], then["state"]["title"]) == (2, LIVE, "Derby")
        verdict = http.get("/api/audit/verify").json()
        assert verdict["valid"]
        assert verdict["checked"] == http.get("/readyz").json()["logHead"]
    product.signal(signal.SIGTERM)
    assert product.ended() == 0
    assert not EmbeddedPostgres(home).running

    again = started.start(home).until_ready()
    with client(again, (home / "admin-api-key").read_text().strip()) as http:
        assert http.get(path).text.replace(again.address, product.address) == shown
        assert http.get(f"/api/audit/event/{event['id']}/").json() == history
        assert http.patch(path, json=title("Derby, replay"), headers=JSON_PATCH).headers["etag"] == '"5"'
    again.signal(signal.SIGINT)
    assert again.ended() == 0
    assert not EmbeddedPostgres(home).running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one") / "home"


@pytest.fixture(scope="module")
def one_home() -> Iterator[Products]:
    with products() as made:
        yield made


class TestOneHome:
    """Other commands next to one running product, and its stop."""

    @pytest.fixture
    def product(self, one_home: Products, home: Path) -> Product:
        """Return the product that runs, or a new one on the same home."""
        running = one_home.running
        return running[-1] if running else one_home.start(migrated_home(home), admin_api_key=KEY).until_ready()

    def test_a_second_one_says_so_in_one_line(self, product: Product, one_home: Products) -> None:
        second = one_home.start(product.home, admin_api_key=KEY)
        assert second.ended() == 1
        assert second.errors.count("\n") == 1
        assert f"already running on this home (pid {product.process.pid})" in second.errors
        assert httpx.get(product.address + "/livez", verify=False).status_code == 200

    def test_a_port_in_use_is_one_line_and_nothing_is_started(self, product: Product, started: Products, tmp_path: Path) -> None:
        port = product.address.rpartition(":")[2]
        other = started.start(tmp_path / "other", port=port)
        assert other.ended() == 1
        assert other.errors.count("\n") == 1
        assert f"port {port}" in other.errors
        assert not (tmp_path / "other" / "postgres").exists()

    def test_requests_under_way_are_answered_before_it_ends(self, product: Product) -> None:
        url = EmbeddedPostgres(product.home).attach()
        with ExitStack() as connections, psycopg.connect(url) as holder:
            holder.execute("SELECT FROM log_identity FOR UPDATE")  # nobody can commit until we let go
            callers = [connections.enter_context(closing(_asking(product, f"Event {n}"))) for n in range(8)]
            until(lambda: _waiting(url))
            until(lambda: _read(product) >= 8)
            product.signal(signal.SIGTERM)
            until(lambda: product.refuses)
            assert not select([caller.sock for caller in callers], [], [], 0)[0]
            assert product.process.poll() is None
            holder.rollback()
            assert [caller.getresponse().status for caller in callers] == [200] * 8
        assert product.ended() == 0
        assert not EmbeddedPostgres(product.home).running


def _waiting(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT FROM pg_stat_activity WHERE application_name = 'medialedger appender' AND wait_event_type = 'Lock'"
        )
        return row.fetchone() is not None


def _asking(product: Product, title: str) -> HTTPConnection:
    """Return a connection whose request is under way."""
    http = HTTPConnection(product.address.removeprefix("http://"), timeout=120)
    http.request("POST", "/api/event/", json.dumps({"title": title}), {"API-KEY": KEY, "Content-Type": "application/json"})
    return http


def _read(product: Product) -> int:
    """Return how many connections the process has accepted, with nothing left to read in them.

    A connection that only the kernel has accepted is reset when the process stops.
    """
    port = int(product.address.rpartition(":")[2])
    established = "01"
    count = 0
    for line in Path(f"/proc/{product.process.pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_, inode = line.split()[:10]
        unread = int(queues.partition(":")[2], 16)
        count += local.endswith(f":{port:04X}") and state == established and inode != "0" and unread == 0
    return count


@pytest.mark.long
def test_two_api_processes_on_one_database_are_as_one(started: Products, own_database: str, tmp_path: Path) -> None:
    settings = {"database_url": own_database, "admin_api_key": KEY}
    twins = [started.start(tmp_path / "home", "api", **settings).until_ready() for _ in range(2)]
    dice = random.Random(3)
    with client(twins[0], KEY) as first, client(twins[1], KEY) as second, ThreadPoolExecutor(16) as threads:
        ids = [first.post("/api/event/", json={"title": f"Event {n}"}).json()["id"] for n in range(3)]

        def patch(number: int) -> tuple[str, int]:
            event, http = dice.choice(ids), (first, second)[number % 2]
            condition = {"If-Match": f'"{dice.randrange(1, 60)}"'} if number % 4 > 1 else {}
            headers = JSON_PATCH | condition
            return event, http.patch(f"/api/event/{event}", json=title(f"title {number} {uuid4()}"), headers=headers).status_code

        answers = list(threads.map(patch, range(200)))
        assert {status for _, status in answers} <= {200, 409, 412}
        for event in ids:
            won = sum(of == event and status == 200 for of, status in answers)
            assert won > 5
            tags = {http.get(f"/api/event/{event}").headers["etag"] for http in (first, second)}
            assert tags == {f'"{won + 1}"'}
            assert len(first.get(f"/api/audit/event/{event}/").json()) == won + 1
        for number in range(40):
            writer, reader = (first, second) if number % 2 else (second, first)
            writer.patch(f"/api/event/{ids[0]}", json=title(f"turn {number}"), headers=JSON_PATCH).raise_for_status()
            assert reader.get(f"/api/event/{ids[0]}").json()["title"] == f"turn {number}"
        assert first.get("/api/audit/verify").json()["valid"]
    for twin in twins:
        twin.signal(signal.SIGTERM)
    assert [twin.ended() for twin in twins] == [0, 0]
