"""A product that is quiet: nothing leaves it until the quiet ends, and then everything that has waited is sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from faults.receivers import Receiver
from tests.e2e.on_air import Station
from tests.support.product import Product, Products, client, migrated_home
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver("receiver", dice=random.Random(5))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def product(started: Products, tmp_path: Path) -> Product:
    home = migrated_home(tmp_path / "home")
    return started.start(home, "up --quiet", admin_api_key=KEY, outbound_allow="127.0.0.0/8").until_ready()


async def test_what_has_waited_goes_out_when_the_quiet_ends(product: Product, receiver: Receiver) -> None:
    await asyncio.to_thread(_follow, product, receiver)


def _follow(product: Product, receiver: Receiver) -> None:
    """Check a webhook, the schedule, an encoder, and a job with a callback: none acts before the end of the quiet, all act
    afterwards."""
    with client(product, KEY) as http:
        receiver.webhook = UUID(http.post("/api/webhook/", json={"webhookUrl": receiver.url}).raise_for_status().json()["id"])
        news = Station(http, "news")
        times = {"scheduledStart": "2020-01-01T00:00:00Z", "scheduledEnd": "2099-01-01T00:00:00Z"}
        event = news.event(autoStart=True, **times)
        job = _job(http, event, receiver.url)
        for number in range(100):
            http.post("/api/event/", json={"title": f"title {number}"}).raise_for_status()
        assert _sign(http, event, job) == (0, [], "queued")
        assert receiver.requests == 0

        _order(http, quiet=False)
        until(lambda: receiver.requests > 100)
        until(lambda: _sign(http, event, job)[0] == 1)
        until(lambda: _sign(http, event, job)[1] == ["running"])
        until(lambda: _sign(http, event, job)[2] == "completed")

        _order(http, quiet=True)
        until(lambda: "running" not in _sign(http, event, job)[1])


def _job(http: httpx.Client, event: str, url: str) -> int:
    order = {"client": "admin", "job": {"workflow": "http_fetch_verify"}, "parameters": {"content_id": event, "url": url}}
    return int(http.post("/engine/job", json=order, headers={"client": "admin"}).raise_for_status().json()["id"])


def _order(http: httpx.Client, *, quiet: bool) -> None:
    assert http.put("/api/quiet/", json={"quiet": quiet}).raise_for_status().json()["quiet"] is quiet


def _sign(http: httpx.Client, event: str, job: int) -> tuple[int, list[str], str]:
    """Return the state of the Event, those of its sessions, and that of the job."""
    state = int(http.get(f"/api/event/{event}").raise_for_status().json()["state"])
    sessions = http.get(f"/api/health/live/session/event/{event}").raise_for_status().json()
    job_details = http.get(f"/engine/jobs/{job}", headers={"client": "admin"}).raise_for_status().json()
    return state, [session["state"] for session in sessions], job_details["queue_state"]
