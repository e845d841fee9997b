"""The overview of the health of the installation, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx

from api.media.attention import attention
from api.media.consumer import Consumer
from api.media.health_figures import ProcessState
from api.media.health_overview import SAMPLES, Overview
from api.wiring.core import Core
from api.wiring.parts import Directories
from api.wiring.providers import overview
from domain.record.kinds.channel import Channel
from projections.consumers.queries import ConsumerStatus
from projections.job.queue import JobNumberSequence
from tests.api.asking import add
from tests.api.engine.jobs_given import start
from tests.api.serving import serving
from tests.support.application import introduce
from tests.support.engine import Engine
from tests.support.feeding import event, record

PATH = "/api/health/overview/"


class Seen(Overview):
    """The overview of a machine without a packager, of which a disk has little room below 10 bytes."""

    def __init__(self, inner: Core, free: Mapping[str, int]) -> None:
        queries = overview(inner.database, Directories(), clock=inner.clock)._from
        super().__init__(queries, clock=inner.clock, free=lambda: free, missing=lambda: ["packager"], low=10, fresh=0.0)


async def test_a_viewer_sees_all_parts(http: httpx.AsyncClient, inner: Core) -> None:
    await add(http, title="One")
    answer = await http.get(PATH, headers={"API-KEY": await introduce(inner, "watcher", "viewer")})
    body = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert body["log"]["position"] > 0
    assert body["log"]["unsealedEvents"] == body["log"]["position"]
    assert body["database"]["bytes"] > 0
    assert set(body["jobs"]["states"]) == {"queued", "started", "pending", "scheduled", "paused", "failed"}
    assert body["deliveries"] == {"pending": 0, "due": 0, "inFlight": 0, "oldestSeconds": 0}
    assert (await http.get(PATH, headers={"API-KEY": await introduce(inner, "packager", "keys")})).status_code == 403


async def test_a_full_disk_is_low(inner: Core, database_url: str) -> None:
    async with serving(inner, database_url, lambda _: {Overview: Seen(inner, {"home": 9, "media": 10})}) as http:
        disks = (await http.get(PATH)).json()["disks"]
    assert disks == [{"name": "home", "freeBytes": 9, "low": True}, {"name": "media", "freeBytes": 10, "low": False}]


async def test_what_needs_attention_is_said_faults_first(inner: Core, database_url: str) -> None:
    engine = Engine(inner, JobNumberSequence(inner.database))
    await start(inner, await engine.accept("http_fetch_verify", url="https://origin.test/a.mp4"))
    async with serving(inner, database_url, lambda _: {Overview: Seen(inner, {"home": 9})}) as http:
        result = (await http.get(PATH)).json()["attention"]
    assert [record["level"] for record in result] == sorted(record["level"] for record in result)
    output = {record["about"]: record for record in result}
    assert output["disks"]["text"] == "There is too little space on the disk of home."
    assert (output["programs"]["level"], "packager is not installed" in output["programs"]["text"]) == ("look", True)
    assert output["jobs"] == {
        "level": "fault",
        "about": "jobs",
        "text": "Steps of jobs are ready, but no process runs them.",
        "command": "medialedger workers work",
        "jobs": None,
    }
    assert "deliveries" not in output


async def test_a_consumer_without_a_worker_is_reported_with_its_role(inner: Core) -> None:
    seen = await Seen(inner, {}).now()
    process = ProcessState(build=1, host="one", pid=1, started_at=seen.at)
    relay = ConsumerStatus(
        name="relay 4L6g3nShT-eMCtK--X86sw", shards=1, owned_shards=0, position=0, head=0, parked=0, oldest_parked_at=None
    )
    figures = seen.model_copy(update={"processes": [process], "consumers": [Consumer.of(relay, [])]})
    [result] = [entry for entry in attention(figures, missing=[]) if entry.about == "consumers"]
    assert result.command == "medialedger workers relay"
    assert "medialedger consumers forget" in result.text


async def test_samples_of_an_hour_are_kept_and_tell_what_was_recorded_between_them(http: httpx.AsyncClient, inner: Core) -> None:
    shown = Seen(inner, {})
    await shown.sample()
    for _ in range(3):
        await add(http, title="One more")
    await shown.sample()
    first, second = (await shown.now()).history
    assert first.events_per_minute == 0 < second.events_per_minute
    for _ in range(SAMPLES):
        await shown.sample()
    assert len((await shown.now()).history) == SAMPLES


async def test_events_that_overlap_within_a_day_are_shown(inner: Core, database_url: str) -> None:
    await record(inner, Channel, 101, name="main")
    day = timedelta(days=1)
    for number, after in ((1, day / 2), (2, day / 2 + timedelta(minutes=1)), (3, 2 * day), (4, 2 * day)):
        times: dict[str, Any] = {
            "scheduled_start": inner.clock() + after,
            "scheduled_end": inner.clock() + after + timedelta(hours=1),
        }
        await event(inner, number, channel_id=UUID(int=101), auto_start=True, **times)
    async with serving(inner, database_url, lambda _: {Overview: Seen(inner, {"home": 9})}) as http:
        body = (await http.get(PATH)).json()
    assert body["overlappingEvents"] == 2
    [look] = [record for record in body["attention"] if record["about"] == "events"]
    assert look["text"] == "2 Events start within a day while another Event uses the same channel."
