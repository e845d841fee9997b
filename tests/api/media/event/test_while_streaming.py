"""Channel and profile do not change while an Event streams; the log store gets an entry. See docs/reference/api/events.md."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.wiring.core import Core
from domain.event.handlers import EventHandlers
from domain.event.values import EventState
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.record import RegisterRecord
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from tests.api.asking import add, of_event, patch, replace
from tests.api.serving import serving
from tests.support.feeding import do

OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.fixture
async def links(inner: Core) -> None:
    """Two channels and two profiles with the same two ids."""
    for key in (OLD, NEW):
        configuration = SentConfiguration("{}", {}, {})
        await do(inner, RegisterRecord(str(key), Channel, {"name": "c", "configuration_json": configuration}))
        await do(inner, RegisterRecord(str(key), InfrastructureProfile, {"name": "p", "configuration_json": "{}"}))


async def streaming_event(http: httpx.AsyncClient) -> str:
    """A live Event with a channel and a profile."""
    fields = {"ChannelId": str(OLD), "InfrastructureProfileId": str(OLD), "EventState": int(EventState.LIVE_PUBLISHED)}
    return str((await add(http, **fields))["id"])


async def entries(http: httpx.AsyncClient, key: str) -> list[dict[str, Any]]:
    response = await http.get(f"/api/log/event/{key}")
    return list(response.json()["results"]) if response.status_code == 200 else []


def message_about(field: str) -> str:
    return f"{field} was not changed: it cannot be changed while the Event streams or is being provisioned"


@pytest.mark.usefixtures("links")
async def test_an_unchanged_field_of_a_post_is_logged(http: httpx.AsyncClient, inner: Core) -> None:
    key = await streaming_event(http)
    body = {"Id": key, "Title": "Final", "ChannelId": str(NEW), "InfrastructureProfileId": str(OLD)}
    response = await http.post("/api/event/", json=body)
    assert (response.status_code, response.json()["title"], response.json()["channelId"]) == (200, "Final", str(OLD))
    assert (await of_event(inner, key))[-1] == "described"
    [entry] = await entries(http, key)
    assert (entry["message"], entry["level"], entry["username"], entry["logger"]) == (
        message_about("ChannelId"),
        "Warn",
        "system",
        "medialedger",
    )
    assert entry["machineName"]


@pytest.mark.usefixtures("links")
async def test_an_unchanged_field_of_a_patch_is_logged_even_if_nothing_else_changes(http: httpx.AsyncClient, inner: Core) -> None:
    key = await streaming_event(http)
    before = await of_event(inner, key)
    steps = [replace("/ChannelId", str(NEW)), {"op": "remove", "path": "/InfrastructureProfileId"}]
    assert (await patch(http, key, *steps)).status_code == 200
    assert await of_event(inner, key) == before
    assert [entry["message"] for entry in await entries(http, key)] == [
        message_about("ChannelId"),
        message_about("InfrastructureProfileId"),
    ]


@pytest.mark.usefixtures("links")
async def test_a_repeat_with_an_idempotency_key_is_logged_once(http: httpx.AsyncClient) -> None:
    key = await streaming_event(http)
    for _ in range(2):
        sent = await http.post("/api/event/", json={"Id": key, "ChannelId": str(NEW)}, headers={"Idempotency-Key": "k"})
        assert sent.status_code == 200
    assert len(await entries(http, key)) == 1


@pytest.mark.usefixtures("links")
async def test_the_change_is_made_even_if_the_log_store_does_not_answer(
    inner: Core, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Database(make_conninfo(database_url, options="-c lock_timeout=50"), size=1) as impatient:
        logbook = Logbook(impatient, inner.clock, machine="m")

        def impatient_handlers(services: dict[Any, Any]) -> dict[Any, object]:
            records, events = services[RecordQueries], services[EventQueries]
            return {EventHandlers: EventHandlers(inner.executor, records, events=events, notes=logbook)}

        async with serving(inner, database_url, impatient_handlers) as http:
            key = await streaming_event(http)
            with psycopg.connect(database_url) as locking:
                locking.execute("LOCK TABLE logbook")
                sent = await http.post("/api/event/", json={"Id": key, "ChannelId": str(NEW), "Title": "Final"})
            assert await entries(http, key) == []
    assert (sent.status_code, sent.json()["title"]) == (200, "Final")
    assert (await of_event(inner, key))[-1] == "described"
    assert [record.levelname for record in caplog.records if "ChannelId was not changed" in record.message] == ["WARNING"]
