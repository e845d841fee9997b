"""The broker freezes: an Event goes on the air and off, its film, an upload and webhooks arrive all the same, with one `up`."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from deploy.kafka.broker import Broker
from faults.receivers import Receiver
from tests.e2e.on_air import Station, captured
from tests.e2e.test_webhooks import LOOPBACK, subscribe
from tests.support.product import Product, Products, client, migrated_home
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"
LIVE, STOPPED = 2, 4
COMPLETED_ASSET = 1


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver("receiver", dice=random.Random(5))
    await made.start()
    yield made
    await made.stop()


@pytest.mark.long
async def test_nothing_waits_for_a_frozen_broker(started: Products, tmp_path: Path, receiver: Receiver) -> None:
    broker, published = Broker(tmp_path / "kafka"), tmp_path / "published"
    published.mkdir()
    published.chmod(0o777)

    def up() -> Product:
        return started.start(
            migrated_home(tmp_path / "home"),
            admin_api_key=KEY,
            outbound_allow=LOOPBACK,
            kafka_bootstrap_servers=broker.start(),
            filesystem_root=str(published),
        ).until_ready()

    def played() -> None:
        with client(product, KEY) as http:
            until(lambda: http.get("/api/health/").json()["consumers"] == "ok" and _relayed(http))
            subscribe(http, receiver)
            news = Station(http, "news", home=product.home)
            broker.freeze()
            event = news.event()
            news.to_state(event, LIVE)
            until(lambda: [(point["state"], point["receivingData"]) for point in news.health(event)] == [("started", True)] * 2)
            news.to_state(event, STOPPED)
            until(lambda: (news.state(), news.state("-b")) == ("stopped", "stopped"))
            captured(http, event, to=tmp_path / "film.mp4", state="VOD_PRIVATE")
            _pictured(http, event)
            _published(http, event)
            until(lambda: event in _notified_events(receiver))
            assert "webhooks" in http.get("/api/health/").json()["consumers"]
            broker.thaw()
            until(lambda: http.get("/api/health/").json()["consumers"] == "ok" and _relayed(http))
            assert not [consumer["name"] for consumer in http.get("/api/consumer/").json() if consumer["parked"]]

    try:
        product = await asyncio.to_thread(up)
        await asyncio.to_thread(played)
        assert "reads the log instead of the broker" in product.errors
    finally:
        await asyncio.to_thread(broker.stop)


def _relayed(http: httpx.Client) -> bool:
    return any(consumer["name"].startswith("relay") and consumer["lag"] == 0 for consumer in http.get("/api/consumer/").json())


def _pictured(http: httpx.Client, event: str) -> None:
    """Wait for the picture of the Event. A consumer reports the end of the job to the asset."""
    image = http.post("/api/asset/image/", json={"eventId": event, "name": "Goal", "time": "00:00:00.5"}).raise_for_status().json()
    until(lambda: http.get(f"/api/asset/{image['id']}").json()["state"] == COMPLETED_ASSET)


def _published(http: httpx.Client, event: str) -> None:
    share = {"name": "Share", "target": "FILESYSTEM", "destinationJson": json.dumps({"path": "."})}
    destination = http.post("/api/media/destination/", json=share).raise_for_status().json()["id"]
    http.put(f"/api/media/destination/active/{destination}?active=true").raise_for_status()
    wanted = {"contentId": event, "destinationId": destination, "publicationJson": "{}"}
    [made] = http.post("/api/vodpublications/", json={"publications": [wanted]}).raise_for_status().json()
    path = f"/api/vodpublications/{made['id']}"
    until(lambda: http.get(path, params={"destinationId": destination}).json()["publicationStateString"] == "Completed")


def _notified_events(receiver: Receiver) -> set[str]:
    return {str(json.loads(body).get("eventId")) for _, body in receiver.arrivals.values()}
