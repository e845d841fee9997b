"""The kill test: an acknowledged write is in the log, once, however the product or its database ended.

Clients write all the time and never stop: a request that was not answered is repeated unchanged when the server answers again.
Every write has its own title, so the log itself shows how often it was carried out.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import httpx
import pytest

from api.wiring.catalogue import catalogue, views
from api.wiring.core import prepare
from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import APP_ROLE, Database
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.projections.log.conftest import Figures
from tests.projections.log.conftest import figures as figures
from tests.projections.log.helpers import until
from tests.support.product import Product, Products, kill_postgres, migrated_home
from workers.adapters.embedded_postgres import EmbeddedPostgres

KEY = "the-admin-key-of-these-tests"
CLIENTS = 8
_PAUSE = 0.04
"""Seconds between the requests of a client. Without a pause the processor decides how much is written during a restart."""


class Kills(NamedTuple):
    server: int
    both: int
    database: int


FEW = Kills(server=1, both=1, database=1)
MANY = Kills(server=18, both=2, database=3)


@dataclass(eq=False)
class Write:
    """A request, the same however often it is sent."""

    title: str
    method: str
    path: str
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Load:
    """Clients that write, and their knowledge of the writes."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.acknowledged: dict[str, str] = {}  # title -> Event
        self.latest: dict[str, str] = {}  # Event -> title of its last acknowledged write
        self.replayed = 0
        self.repeated = 0
        self.over = False
        self._dice = random.Random(5)
        self._served = asyncio.Event()
        self._http = httpx.AsyncClient(headers={"API-KEY": KEY}, timeout=30, verify=False)

    def at(self, address: str | None) -> None:
        self.address = address
        if address is None:
            self._served.clear()
        else:
            self._served.set()

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self._http.get(f"{self.address}{path}", params=query)
        return answer.raise_for_status().json()

    async def ready(self) -> bool:
        try:
            return (await self._http.get(f"{self.address}/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def client(self, name: int) -> None:
        number, event = 0, ""
        while not self.over:
            number += 1
            title = f"client {name} write {number}"
            if not event or self._dice.random() < 0.4:
                write = Write(title, "POST", "/api/event/", {"title": title}, {"Idempotency-Key": title.replace(" ", "-")})
            else:
                step = {"op": "replace", "path": "/title", "value": title}
                write = Write(title, "PATCH", f"/api/event/{event}", [step], {"Content-Type": "application/json-patch+json"})
            event = await self._carried_through(write)
            self.acknowledged[title] = event
            self.latest[event] = title
            await asyncio.sleep(_PAUSE)

    async def _carried_through(self, write: Write) -> str:
        while True:
            await self._served.wait()
            try:
                answer = await self._http.request(
                    write.method, f"{self.address}{write.path}", json=write.body, headers=write.headers
                )
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 200:
                self.replayed += "idempotency-replayed" in answer.headers
                assert answer.json()["title"] == write.title
                return str(answer.json()["id"])
            assert answer is None or answer.status_code == 503, answer.text
            self.repeated += 1
            await asyncio.sleep(_PAUSE)


class Witness:
    """Reads the log through the audit, from where it was the last time, and counts how often every title was written."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.written: Counter[str] = Counter()
        self._position = 0

    async def check(self) -> None:
        """Check that every write that was acknowledged before the look is found by it, whether the clients are at rest or not."""
        acknowledged, latest = dict(self.load.acknowledged), dict(self.load.latest)
        while entries := (await self.load.get("/api/audit/events/", after=self._position, pageSize=1000))["results"]:
            assert [entry["position"] for entry in entries] == list(range(self._position + 1, self._position + 1 + len(entries)))
            self._position = entries[-1]["position"]
            self.written.update(entry["data"]["title"] for entry in entries if "title" in entry["data"])
        assert not [title for title in acknowledged if not self.written[title]], "lost"
        assert not [title for title, times in self.written.items() if times > 1], "twice"
        verdict = await self.load.get("/api/audit/verify")
        assert verdict["valid"], verdict["reason"]
        for event in list(latest)[-10:]:
            title = (await self.load.get(f"/api/event/{event}"))["title"]
            assert title in (latest[event], self.load.latest[event]) or title not in acknowledged


@asynccontextmanager
async def under_load(load: Load) -> AsyncIterator[None]:
    """Run the load while the context is open. A client that observes a violation ends the test at once."""
    async with asyncio.TaskGroup() as clients:
        for name in range(CLIENTS):
            clients.create_task(load.client(name))
        yield
        load.over = True


@dataclass
class Scene:
    """The product on one home, the load on it, and the faults that are injected."""

    started: Products
    home: Path
    load: Load
    witness: Witness
    product: Product
    slowest: float = 0.0

    async def in_progress(self, dice: random.Random) -> None:
        """Wait for a random moment at which writes are being carried out."""
        goal = len(self.load.acknowledged) + dice.randrange(20, 90)
        await until(lambda: len(self.load.acknowledged) >= goal, seconds=180)

    async def restart(self) -> None:
        begin = monotonic()
        self.product = await asyncio.to_thread(up, self.started, self.home)
        self.slowest = max(self.slowest, monotonic() - begin)
        self.load.address = self.product.address

    async def kill_server(self) -> None:
        """Kill the server. The clients wait until the writes that they know were found, and only then repeat those that were not
        answered."""
        self.product.process.kill()
        self.load.at(None)
        await asyncio.to_thread(self.product.kill)
        await self.restart()
        await self.witness.check()
        self.load.at(self.product.address)

    async def kill_database(self) -> None:
        """Kill the database. The server stays: it answers 503 until it has started its database again."""
        await asyncio.to_thread(kill_postgres, self.home)
        await self._until_ready()
        await self.witness.check()

    async def kill_both(self) -> None:
        self.product.process.kill()
        self.load.at(None)
        await asyncio.to_thread(kill_postgres, self.home)
        await asyncio.to_thread(self.product.kill)
        await self.restart()
        await self.witness.check()
        self.load.at(self.product.address)

    async def _until_ready(self) -> None:
        """Wait for as many successes in a row as the pool has connections: each dead connection may fail once."""
        async with asyncio.timeout(180):
            answers = 0
            while answers < 8:
                answers = answers + 1 if await self.load.ready() else 0
                await asyncio.sleep(0.01)


def up(started: Products, home: Path) -> Product:
    return started.start(home, admin_api_key=KEY).until_ready()


async def test_nothing_acknowledged_is_lost_and_nothing_is_twice(
    started: Products, tmp_path: Path, figures: Figures, thorough: bool
) -> None:
    kills = MANY if thorough else FEW
    home, load, dice = migrated_home(tmp_path / "home"), Load(), random.Random(23)
    scene = Scene(started, home, load, Witness(load), await asyncio.to_thread(up, started, home))
    load.at(scene.product.address)
    attacks: list[Callable[[], Awaitable[None]]] = [
        *[scene.kill_server] * kills.server,
        *[scene.kill_both] * kills.both,
        *[scene.kill_database] * kills.database,
    ]
    dice.shuffle(attacks)
    async with under_load(load):
        for attack in attacks:
            await scene.in_progress(dice)
            await attack()
        await scene.in_progress(dice)
    await scene.witness.check()
    assert set(scene.witness.written) == set(load.acknowledged)  # every doubt was cleared up by a repeat
    assert load.repeated >= kills.server + kills.both
    figures("kill test: writes acknowledged", len(load.acknowledged))
    figures("kill test: requests repeated", load.repeated)
    figures("kill test: repeats that found their first answer", load.replayed)
    figures("kill test: slowest restart, in seconds", round(scene.slowest, 2))
    await load.close()
    await views_equal_a_rebuild(home, events=len(load.latest))


async def views_equal_a_rebuild(home: Path, *, events: int) -> None:
    url = EmbeddedPostgres(home).attach()
    assert await prepare(url) == APP_ROLE
    owner = Database(url, size=4)
    await owner.open()
    try:
        rebuilder = Rebuilder(owner, Streams(owner, EventMapper(catalogue())), app_role=APP_ROLE)
        for view in views().all:
            question = f"SELECT * FROM {view.name} ORDER BY {', '.join(view.key)}"
            live = await owner.rows(question)
            await rebuilder.rebuild(view)
            assert await owner.rows(question) == live
            if view.name == "event_view":
                assert len(live) == events
    finally:
        await owner.close()


@pytest.mark.long
async def test_a_kill_during_the_first_start_leaves_a_home_that_starts(started: Products, tmp_path: Path) -> None:
    """The kills are at the worst moments of a first start: while the database is created, and when it first runs."""
    home = tmp_path / "home"
    for made in ("postgres.new", "postgres/postmaster.pid"):
        product = started.start(home, admin_api_key=KEY)
        await until((home / made).exists, seconds=60)
        product.kill()
    load = Load()
    load.at((await asyncio.to_thread(up, started, home)).address)
    assert (await load.get("/api/audit/verify"))["valid"]
    await load.close()
