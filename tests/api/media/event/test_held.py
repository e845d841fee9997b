"""What a running stream keeps as it was is written down about the Event. Document 2, POST /event/; decisions.md, "Events"."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from api.core import Core
from api.kernel.commands import CommandBus
from api.media.event.held import EventWrites
from api.media.event.show import EventAnswers
from domain.media_event.values import EventState
from domain.records.configured import SentConfiguration
from domain.records.kinds.channel import Channel
from domain.records.kinds.infrastructure_profile import InfrastructureProfile
from domain.records.record import RegisterRecord
from projections.kernel.database import Database
from projections.logbook.logbook import Logbook
from tests.api.asking import add, of_event, patch, replace
from tests.api.serving import serving
from tests.projections.feeding import do

BEFORE, AFTER = UUID(int=1), UUID(int=2)
STREAMING = [EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.LIVE_STARTING]


@pytest.fixture
async def links(inner: Core) -> None:
    """Two channels and two profiles, with the same two ids."""
    for key in (BEFORE, AFTER):
        configuration = SentConfiguration("{}", {}, frozenset())
        await do(inner, RegisterRecord(str(key), Channel, {"name": "c", "configuration_json": configuration}))
        await do(inner, RegisterRecord(str(key), InfrastructureProfile, {"name": "p", "configuration_json": "{}"}))


async def on(http: httpx.AsyncClient, state: EventState) -> str:
    """An Event in a state, with a channel and a profile."""
    fields = {"ChannelId": str(BEFORE), "InfrastructureProfileId": str(BEFORE), "EventState": int(state)}
    return str((await add(http, **fields))["id"])


async def notes(http: httpx.AsyncClient, key: str) -> list[dict[str, Any]]:
    answer = await http.get(f"/api/log/event/{key}")
    return list(answer.json()["results"]) if answer.status_code == 200 else []


def left(field: str) -> str:
    return f"{field} was left as it was: it cannot be changed while the Event streams or is being provisioned"


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("state", STREAMING)
async def test_a_post_that_leaves_a_field_says_so_in_the_log(http: httpx.AsyncClient, inner: Core, state: EventState) -> None:
    key = await on(http, state)
    body = {"Id": key, "Title": "Final", "ChannelId": str(AFTER), "InfrastructureProfileId": str(BEFORE)}
    answer = await http.post("/api/event/", json=body)
    assert (answer.status_code, answer.json()["title"], answer.json()["channelId"]) == (200, "Final", str(BEFORE))
    assert (await of_event(inner, key))[-1] == "described"
    [note] = await notes(http, key)
    assert (note["message"], note["level"], note["username"], note["logger"]) == (
        left("ChannelId"),
        "Warn",
        "system",
        "medialedger",
    )
    assert note["machineName"]


@pytest.mark.usefixtures("links")
async def test_a_patch_says_so_too_even_when_nothing_else_changes(http: httpx.AsyncClient, inner: Core) -> None:
    key = await on(http, EventState.LIVE_PUBLISHED)
    before = await of_event(inner, key)
    steps = [replace("/ChannelId", str(AFTER)), {"op": "remove", "path": "/InfrastructureProfileId"}]
    assert (await patch(http, key, *steps)).status_code == 200
    assert await of_event(inner, key) == before
    assert [note["message"] for note in await notes(http, key)] == [left("ChannelId"), left("InfrastructureProfileId")]


@pytest.mark.usefixtures("links")
async def test_what_is_taken_or_not_asked_for_leaves_no_note(http: httpx.AsyncClient) -> None:
    key = await on(http, EventState.STOPPED)
    for body in (
        {"ChannelId": str(AFTER), "InfrastructureProfileId": None},
        {"ChannelId": str(BEFORE), "EventState": 2},
        {"ChannelId": str(BEFORE), "Title": "x"},
        {"Title": "y"},
    ):
        assert (await http.post("/api/event/", json={"Id": key, **body})).status_code == 200
    assert (await patch(http, key, replace("/ChannelId", str(AFTER)), replace("/ChannelId", str(BEFORE)))).status_code == 200
    assert await notes(http, key) == []


@pytest.mark.usefixtures("links")
async def test_the_same_post_with_the_same_key_is_noted_once(http: httpx.AsyncClient) -> None:
    key = await on(http, EventState.LIVE_PUBLISHED)
    for _ in range(2):
        sent = await http.post("/api/event/", json={"Id": key, "ChannelId": str(AFTER)}, headers={"Idempotency-Key": "k"})
        assert sent.status_code == 200
    assert len(await notes(http, key)) == 1


@pytest.mark.usefixtures("links")
async def test_what_is_refused_leaves_no_note(http: httpx.AsyncClient) -> None:
    key = await on(http, EventState.LIVE_PUBLISHED)
    steps = [replace("/ChannelId", str(AFTER))]
    assert (await patch(http, key, *steps, {"op": "test", "path": "/Title", "value": "other"})).status_code == 409
    assert (await patch(http, key, *steps, **{"If-Match": '"99"'})).status_code == 412
    assert await notes(http, key) == []


@pytest.mark.usefixtures("links")
async def test_a_change_stands_though_the_log_store_does_not_answer(
    inner: Core, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Database(make_conninfo(database_url, options="-c lock_timeout=50"), size=1) as impatient:
        logbook = Logbook(impatient, inner.clock, machine="m")

        def replaced(known: dict[Any, Any]) -> dict[Any, object]:
            return {EventWrites: EventWrites(known[CommandBus], known[EventAnswers], logbook=logbook)}

        async with serving(inner, database_url, replaced) as http:
            key = await on(http, EventState.LIVE_PUBLISHED)
            with psycopg.connect(database_url) as locking:
                locking.execute("LOCK TABLE logbook")
                sent = await http.post("/api/event/", json={"Id": key, "ChannelId": str(AFTER), "Title": "Final"})
            assert await notes(http, key) == []
    assert (sent.status_code, sent.json()["title"]) == (200, "Final")
    assert (await of_event(inner, key))[-1] == "described"
    assert [record.levelname for record in caplog.records if "ChannelId was left as it was" in record.message] == ["WARNING"]
