"""Webhooks end to end with real processes: notifications of writes arrive, in order and signed, however the product ended
meanwhile.

The fault matrix (`make faults`) does the same at length; this is the part of it that every change must pass.
"""

from __future__ import annotations

import asyncio
import random
from base64 import b64decode
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from pydantic_core import from_json

from faults.processes import Supervised
from faults.receivers import Behaviour, Receiver
from projections.webhook.keys import delivery_id
from tests.support.product import Product, Products, client, migrated_home
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"
EVENTS = 10
ROUNDS = 8
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
LOOPBACK = "127.0.0.0/8"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver that answers slowly, so that a delivery is in flight whenever the product ends."""
    made = Receiver("receiver", behaviour=Behaviour.SLOW, dice=random.Random(5))
    await made.start()
    yield made
    await made.stop()


def subscribe(http: httpx.Client, receiver: Receiver) -> None:
    made = http.post("/api/webhook/", json={"webhookUrl": receiver.url}).raise_for_status().json()
    receiver.webhook, receiver.secret = UUID(made["id"]), b64decode(made["secret"].removeprefix("whsec_"))


def write(http: httpx.Client, events: Sequence[str], *, rounds: range) -> None:
    for number in rounds:
        for event in events:
            step = [{"op": "replace", "path": "/title", "value": f"title {number}"}]
            http.patch(f"/api/event/{event}", json=step, headers=JSON_PATCH).raise_for_status()


def make(http: httpx.Client) -> list[str]:
    return [http.post("/api/event/", json={"title": "title 0"}).raise_for_status().json()["id"] for _ in range(EVENTS)]


def due(http: httpx.Client, receiver: Receiver) -> Mapping[UUID, tuple[str, int]]:
    """Return the expected notifications by the audit log: each write here is one domain event."""
    notifications: dict[UUID, tuple[str, int]] = {}
    after = 0
    while entries := http.get("/api/audit/events/", params={"after": after, "pageSize": 1000}).json()["results"]:
        after = entries[-1]["position"]
        for entry in entries:
            if entry["aggregate"] == "event":
                ordering_key, position = entry["id"], entry["position"]
                notifications[delivery_id(receiver.webhook, position, ordering_key=ordering_key)] = (ordering_key, position)
    return notifications


async def all_arrived(receiver: Receiver, wanted: Mapping[UUID, object]) -> None:
    await asyncio.to_thread(until, lambda: wanted.keys() <= receiver.accepted.keys())


def assert_right(receiver: Receiver, wanted: Mapping[UUID, tuple[str, int]]) -> None:
    """Check for notifications of the log only, first arrivals of each Event in log order, unchanged repeats, and signatures."""
    assert receiver.arrivals.keys() == wanted.keys()
    assert (receiver.altered, receiver.unsigned) == (0, 0)
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for delivery, (_, body) in receiver.arrivals.items():
        ordering_key, position = wanted[delivery]
        assert from_json(body)["eventId"] == ordering_key
        positions[ordering_key].append(position)
    assert len(positions) == EVENTS
    assert all(event_positions == sorted(event_positions) for event_positions in positions.values())


async def test_writes_from_before_a_kill_arrive_after_it(started: Products, tmp_path: Path, receiver: Receiver) -> None:
    home = migrated_home(tmp_path / "home")

    def up() -> Product:
        return started.start(home, admin_api_key=KEY, outbound_allow=LOOPBACK).until_ready()

    def before() -> None:
        with client(product, KEY) as http:
            subscribe(http, receiver)
            write(http, make(http), rounds=range(1, ROUNDS))
        product.kill()

    def after() -> Mapping[UUID, tuple[str, int]]:
        with client(up(), KEY) as http:
            return due(http, receiver)

    product = await asyncio.to_thread(up)
    await asyncio.to_thread(before)
    arrived = set(receiver.accepted)
    wanted = await asyncio.to_thread(after)
    assert len(wanted) == EVENTS * ROUNDS
    assert arrived < wanted.keys()
    await all_arrived(receiver, wanted)
    assert_right(receiver, wanted)


@pytest.mark.long
async def test_workers_that_are_killed_lose_nothing_on_the_way_through_kafka(
    started: Products, tmp_path: Path, receiver: Receiver, kafka: str, own_database: str
) -> None:
    """The commands `api` and `workers` run as separate processes, on a separate database."""
    shared = {"database_url": own_database, "kafka_bootstrap_servers": kafka}
    environment = {f"MEDIALEDGER_{name.upper()}": value for name, value in (shared | {"outbound_allow": LOOPBACK}).items()}
    environment["MEDIALEDGER_HOME"] = str(tmp_path / "home")
    async with AsyncExitStack() as ending:

        def api() -> Product:
            return started.start(tmp_path / "home", "api", admin_api_key=KEY, **shared).until_ready()

        http = ending.enter_context(client(await asyncio.to_thread(api), KEY))
        workers = Supervised("workers", ["workers"], environment=environment, logs=tmp_path)
        workers.start()
        ending.push_async_callback(workers.stop)
        await workers.until_ready()
        await asyncio.to_thread(subscribe, http, receiver)
        events = await asyncio.to_thread(make, http)
        await asyncio.to_thread(write, http, events, rounds=range(1, ROUNDS // 2))
        await asyncio.to_thread(until, lambda: receiver.accepted)
        workers.kill()
        await asyncio.to_thread(write, http, events, rounds=range(ROUNDS // 2, ROUNDS))
        wanted = await asyncio.to_thread(due, http, receiver)
        assert len(wanted) == EVENTS * ROUNDS
        await all_arrived(receiver, wanted)
        assert_right(receiver, wanted)
