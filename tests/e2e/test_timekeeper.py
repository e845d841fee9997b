"""The schedule with real processes: nothing is missed, and nothing is done twice, however the processes ended."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import psycopg
import pytest
from pydantic_core import from_json

from domain.kernel.clock import iso
from faults.receivers import Behaviour, Receiver
from tests.support.product import Product, Products, client
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"
LOOPBACK = "127.0.0.0/8"
EVENTS = 200
APART = timedelta(milliseconds=150)
"""The time between Events. All of them take longer to become due than two leases take to expire, so that a timekeeper always ends
in the middle."""
HOUR = timedelta(hours=1)
_LATE = 'medialedger_timekeeper_late_seconds_count{action="start"} 2.0'
_MEMBERS = "SELECT member FROM consumer_members WHERE consumer = 'timekeeper'"
_STARTS = """
SELECT originator_id, count(*) FROM events
WHERE topic = 'event.state_changed' AND convert_from(state, 'UTF8')::json ->> 'trigger' = 'schedule' GROUP BY 1
"""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver("receiver", behaviour=Behaviour.HEALTHY, dice=random.Random(5))
    await made.start()
    yield made
    await made.stop()


def add(http: httpx.Client, start: datetime, end: datetime | None = None, **more: Any) -> str:
    times = {"scheduledStart": iso(start), "scheduledEnd": end and iso(end)}
    body = {"autoStart": True, "autoEnd": True, **times, **more}
    return str(http.post("/api/event/", json=body).raise_for_status().json()["id"])


def state(http: httpx.Client, event: str) -> int:
    return int(http.get(f"/api/event/{event}").raise_for_status().json()["state"])


async def test_what_was_due_while_no_timekeeper_ran_is_done_after_the_start(
    started: Products, tmp_path: Path, own_database: str, receiver: Receiver
) -> None:
    settings = {"database_url": own_database, "admin_api_key": KEY, "outbound_allow": LOOPBACK}

    def before() -> list[str]:
        api = started.start(tmp_path / "home", "api", **settings).until_ready()
        now = datetime.now(UTC)
        with client(api, KEY) as http:
            http.post("/api/webhook/", json={"webhookUrl": receiver.url}).raise_for_status()
            added = [
                add(http, now - HOUR, now + HOUR),
                add(http, now - HOUR, autoPublish=True),
                add(http, now - 2 * HOUR, now - HOUR, eventState=2),
                add(http, now - 2 * HOUR, now - HOUR),
                add(http, now - HOUR, autoStart=False),
            ]
        api.kill()
        return added

    def after() -> list[dict[str, Any]]:
        product = started.start(tmp_path / "home", **settings).until_ready()
        with client(product, KEY) as http:
            until(lambda: [state(http, event) for event in events] == [1, 2, 4, 0, 0])
            entries = http.get("/api/audit/events/").raise_for_status().json()["results"]
            until(lambda: _LATE in http.get("/metrics").text)
        return [entry for entry in entries if entry["data"].get("trigger") == "schedule"]

    events = await asyncio.to_thread(before)
    scheduled = await asyncio.to_thread(after)
    assert {(entry["id"], entry["actor"], entry["data"]["state"]) for entry in scheduled} == {
        (events[0], "system", 1),
        (events[1], "system", 2),
        (events[2], "system", 4),
    }
    await asyncio.to_thread(until, lambda: len(_notified(receiver)) >= 3)
    expected = [(events[0], "LIVE_UNPUBLISHED"), (events[1], "LIVE_PUBLISHED"), (events[2], "STOPPED")]
    assert _notified(receiver) == sorted(expected)


def _notified(receiver: Receiver) -> list[tuple[str, str]]:
    """Return the Events whose webhook was notified of a changed state after they were added."""
    bodies = [from_json(body) for _, body in list(receiver.arrivals.values())]
    changed = [body for body in bodies if body["stateChanged"] and body["action"] == "Updated"]
    return sorted((body["eventId"], body["state"]) for body in changed)


@pytest.mark.long
def test_two_timekeepers_of_which_one_is_killed_and_one_frozen_start_each_event_once(
    started: Products, tmp_path: Path, own_database: str
) -> None:
    home = tmp_path / "home"

    def timekeeper() -> Product:
        """Start a timekeeper that is ready to take over, or active if it is the only one."""
        earlier = members()
        product = started.start(home, "workers timekeeper", database_url=own_database)
        until(lambda: members() - earlier)
        return product

    def members() -> set[object]:
        return {member for (member,) in connection.execute(_MEMBERS).fetchall()}

    def counted(question: str) -> int:
        counts = connection.execute(question.encode()).fetchone()
        return int(counts[0]) if counts else 0

    def reached(count: int) -> bool:
        return counted(f"SELECT count(*) FROM event_view WHERE state = 1 HAVING count(*) >= {count}") >= count

    api = started.start(home, "api", database_url=own_database, admin_api_key=KEY).until_ready()
    with closing(psycopg.connect(own_database, autocommit=True)) as connection, client(api, KEY) as http:
        active = timekeeper()
        standing_by = timekeeper()
        with ThreadPoolExecutor(8) as threads:
            begun = monotonic()
            list(threads.map(lambda _: add(http, datetime.now(UTC), autoStart=False), range(EVENTS // 10)))
            first = datetime.now(UTC) + timedelta(seconds=1 + 12 * (monotonic() - begun))  # when all of them are added
            events = list(threads.map(lambda number: add(http, first + number * APART), range(EVENTS)))
        until(lambda: reached(EVENTS // 5))
        active.kill()
        assert not reached(EVENTS)
        third = timekeeper()
        until(lambda: reached(EVENTS * 3 // 5))
        standing_by.signal(signal.SIGSTOP)
        assert not reached(EVENTS)
        until(lambda: reached(EVENTS * 4 // 5))
        standing_by.signal(signal.SIGCONT)
        until(lambda: reached(EVENTS))
        assert third.process.poll() is None
        until(lambda: counted("SELECT count(*) FROM event_view WHERE auto_start_at IS NOT NULL") == 0)
        starts: dict[str, int] = dict(connection.execute(_STARTS).fetchall())
        assert starts == {f"event:{event}": 1 for event in events}
