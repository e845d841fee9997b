"""Provisioning over HTTP: the answers, the appended events, and what is refused. The end of a run is told by hand."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.wiring.core import Core
from domain.kernel.clock import iso
from domain.kernel.ids import hashed
from domain.provision.values import ProvisionState
from tests.api.asking import UNKNOWN, add, assert_problem, logged, topics, version_of
from tests.api.media.provision.provisions_given import (
    RESOURCES,
    Ends,
    add_profile,
    document,
    event_with,
    info,
    provision,
    reset,
    resources,
    shown,
    terminate,
)
from tests.support.clock import NOON, HandClock

UP = tuple({**resource, "ipAddress": f"198.51.100.{number}"} for number, resource in enumerate(RESOURCES, start=1))
TIME = iso(NOON)


@pytest.fixture
def ends(inner: Core) -> Ends:
    return Ends(inner)


async def test_an_event_is_provisioned_and_shows_it_in_one_append(http: httpx.AsyncClient, inner: Core, ends: Ends) -> None:
    event = await event_with(http)
    assert (await shown(http, event))["provisionInfo"] is None
    answer = await http.post(f"/api/provision/{event}")
    key = str(hashed("provision", event))
    summary = {
        "id": key,
        "infrastructureKey": event,
        "provisionedAt": TIME,
        "terminatedAt": None,
        "state": 1,
        "stateString": "PROVISIONING",
    }
    assert (answer.status_code, answer.json()) == (200, {**summary, "resourcesJson": "[]"})
    assert (await shown(http, event))["provisionInfo"] == summary
    appended = [event for event in await logged(inner) if event.topic.startswith("provision.") or "provision_state" in event.topic]
    assert [event.topic for event in appended] == ["event.provision_state_changed", "provision.opened", "provision.requested"]
    assert [entry.position - appended[0].position for entry in appended] == [0, 1, 2]
    await ends.tell(event, 1, *UP)
    result = await info(http, event)
    assert (result["state"], result["stateString"], json.loads(result["resourcesJson"])) == (3, "PROVISIONED", list(UP))
    assert await resources(http, event) == {
        "eventId": event,
        "state": 3,
        "stateString": "PROVISIONED",
        "infrastructureKey": event,
        "resources": list(UP),
    }


async def test_the_state_table(http: httpx.AsyncClient, ends: Ends) -> None:
    event = await event_with(http)
    assert (await provision(http, event))["state"] == (await provision(http, event))["state"] == 1
    await reset(http, event, status=409)
    await ends.tell(event, 1, UP[0])
    assert (await info(http, event))["stateString"] == "PROVISIONED_PARTIAL"
    assert (await terminate(http, event))["stateString"] == "TERMINATING"
    assert (await terminate(http, event))["stateString"] == "TERMINATING"
    await provision(http, event, status=409)
    await reset(http, event, status=409)
    await ends.tell(event, 1, *UP)
    assert (await info(http, event))["stateString"] == "TERMINATING", "a late end of an earlier run"
    await ends.tell(event, 2, remaining=True)
    assert (await info(http, event))["stateString"] == "TERMINATING_FAILED"
    assert (await terminate(http, event))["stateString"] == "TERMINATING"
    await ends.tell(event, 3)
    ended = await info(http, event)
    assert (ended["stateString"], ended["terminatedAt"], ended["resourcesJson"]) == ("TERMINATED", TIME, "[]")
    assert (await terminate(http, event))["stateString"] == "TERMINATED"
    assert (await provision(http, event))["terminatedAt"] is None
    await ends.tell(event, 4, remaining=True)
    assert (await info(http, event))["stateString"] == "PROVISIONING_FAILED"
    assert (await reset(http, event))["stateString"] == "SCHEDULED"
    await ends.tell(event, 4, *UP)
    assert (await info(http, event))["stateString"] == "SCHEDULED"
    assert (await provision(http, event))["stateString"] == "PROVISIONING"


@pytest.mark.parametrize(("ask", "state"), [(terminate, "TERMINATED"), (reset, "SCHEDULED")])
async def test_without_infrastructure_there_is_nothing_to_end(http: httpx.AsyncClient, ask: Any, state: str) -> None:
    """This also holds for an Event without a profile."""
    event = str((await add(http))["id"])
    await info(http, event, status=404)
    assert (await ask(http, event))["stateString"] == state
    result = await info(http, event)
    assert (result["stateString"], result["infrastructureKey"]) == (state, event)


async def test_resources_of_an_event_that_is_not_provisioned_are_those_of_its_profile(http: httpx.AsyncClient) -> None:
    event = await event_with(http, document(key="k", isolationMode="byInfrastructure"))
    expected = {"eventId": event, "state": 0, "stateString": "SCHEDULED", "infrastructureKey": "k", "resources": RESOURCES}
    assert await resources(http, event) == expected
    await resources(http, str((await add(http))["id"]), status=409)
    await resources(http, UNKNOWN, status=404)


@pytest.mark.parametrize(
    ("options", "key", "reference", "expected"),
    [
        ({}, None, None, "{event}"),
        ({"isolationMode": "byEvent"}, "k", None, "k-{event}"),
        ({}, "k", None, "k-{event}"),
        ({"isolationMode": "byInfrastructure"}, "k", "r", "k"),
        ({"isolationMode": "BYINFRASTRUCTURE"}, None, "r", "r"),
        ({"isolationMode": "byInfrastructure"}, None, None, "{profile}"),
    ],
)
async def test_the_infrastructure_key(
    http: httpx.AsyncClient, options: dict[str, Any], key: str | None, reference: str | None, expected: str
) -> None:
    profile = await add_profile(http, document(key=key, **options), referenceId=reference)
    event = str((await add(http, infrastructureProfileId=profile))["id"])
    assert (await provision(http, event))["infrastructureKey"] == expected.format(event=event, profile=profile)


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        (document(resources=[]), "no resources"),
        (document(resources=[RESOURCES[0], RESOURCES[0]]), "'origin-1'"),
        (document(settings={"TF_VAR_api_key": "k"}), "request.settings.TF_VAR_api_key"),
        (document(resources=[{**RESOURCES[0], "settings": {"a": {"password": "p"}}}]), "request.resources[0].settings.a.password"),
        (document(key="k" * 300), "255"),
        (document(key="a\nb"), "printable"),
    ],
)
async def test_a_profile_that_cannot_be_provisioned_is_409(
    http: httpx.AsyncClient, inner: Core, configuration: dict[str, Any], words: str
) -> None:
    event = await event_with(http, configuration)
    answer = await http.post(f"/api/provision/{event}")
    assert_problem(answer, 409)
    assert words in answer.json()["detail"]
    assert await topics(inner, f"provision:{hashed('provision', event)}") == []


async def test_an_event_without_a_profile_is_409(http: httpx.AsyncClient) -> None:
    assert "profile" in (await provision(http, str((await add(http))["id"]), status=409))["detail"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_unknown_and_deleted_events_are_404_and_malformed_ids_400(http: httpx.AsyncClient, method: str) -> None:
    event = await event_with(http)
    await http.delete(f"/api/event/{event}")
    for key, status in ((UNKNOWN, 404), (event, 404), ("what", 400)):
        for address in (key, f"reset/{key}") if method == "DELETE" else (key,):
            assert (await http.request(method, f"/api/provision/{address}")).status_code == status


@pytest.mark.parametrize("value", ["maybe", "2", ""])
async def test_a_bad_flag_is_400(http: httpx.AsyncClient, value: str) -> None:
    assert (await http.post(f"/api/provision/{await event_with(http)}", params={"allowUpdates": value})).status_code == 400


@pytest.mark.parametrize(
    ("profile", "query", "expected"), [(None, {}, False), (True, {}, True), (True, {"allowUpdates": "false"}, False)]
)
async def test_who_allows_updates(
    http: httpx.AsyncClient, inner: Core, profile: bool | None, query: dict[str, Any], expected: bool
) -> None:
    event = await event_with(http, document(allowUpdates=profile))
    await provision(http, event, **query)
    assert (await logged(inner, f"provision:{hashed('provision', event)}"))[-1].data["allow_updates"] is expected


async def test_channel_and_profile_are_held_while_provisioning(http: httpx.AsyncClient, ends: Ends) -> None:
    event, other = await event_with(http), await add_profile(http)
    before = (await shown(http, event))["infrastructureProfileId"]
    await provision(http, event)
    change = {"id": event, "infrastructureProfileId": other, "title": "Final"}
    owned = (await http.post("/api/event/", json=change)).json()
    assert (owned["infrastructureProfileId"], owned["title"]) == (before, "Final")
    await ends.tell(event, 1, *UP)
    assert (await http.post("/api/event/", json=change)).json()["infrastructureProfileId"] == other


async def test_events_are_found_by_their_state(http: httpx.AsyncClient, ends: Ends) -> None:
    first, second = await event_with(http), await event_with(http)
    await add(http)
    await provision(http, first)
    await provision(http, second)
    await ends.tell(second, 1, *UP)

    async def event_ids(states: str) -> set[str]:
        page = (await http.get("/api/event/", params={"provisionState": states})).json()
        assert page["totalCount"] == len(page["results"])
        return {event["id"] for event in page["results"]}

    assert await event_ids("PROVISIONING") == await event_ids("1") == {first}
    assert await event_ids("1,provisioned") == {first, second}
    assert await event_ids("SCHEDULED,TERMINATED") == set()


async def test_a_deleted_event_is_terminated_in_the_same_append(http: httpx.AsyncClient, inner: Core, ends: Ends) -> None:
    event = await event_with(http)
    await provision(http, event)
    deleted = (await http.delete(f"/api/event/{event}")).json()
    assert deleted["provisionInfo"]["stateString"] == "TERMINATING"
    stream = f"provision:{hashed('provision', event)}"
    assert (await topics(inner, stream))[-1] == "provision.termination_requested"
    await ends.tell(event, 2)
    assert (await topics(inner, stream))[-1] == "provision.terminated"
    restored = (await http.put(f"/api/event/restore/{event}")).json()
    assert restored["provisionInfo"]["stateString"] == "TERMINATED"


async def test_if_match_and_etag_are_those_of_the_provision_info(http: httpx.AsyncClient) -> None:
    event = await event_with(http)
    written = await http.post(f"/api/provision/{event}")
    read = await http.get(f"/api/provision/{event}")
    etag = read.headers["etag"]
    assert version_of(read) == version_of(written)
    assert (await http.delete(f"/api/provision/{event}", headers={"If-Match": '"99"'})).status_code == 412
    assert (await http.delete(f"/api/provision/{event}", headers={"If-Match": etag})).status_code == 200


async def test_a_repeat_with_an_idempotency_key_shows_the_first_answer(http: httpx.AsyncClient, ends: Ends) -> None:
    event, headers = await event_with(http), {"Idempotency-Key": str(uuid4())}
    first = await http.post(f"/api/provision/{event}", headers=headers)
    await ends.tell(event, 1, *UP)
    assert (await http.post(f"/api/provision/{event}", headers=headers)).json() == first.json()


async def test_the_history_is_by_the_id_of_the_provision_info(http: httpx.AsyncClient, ends: Ends) -> None:
    event = await event_with(http)
    key = (await provision(http, event))["id"]
    await ends.tell(event, 1, *UP)
    history = (await http.get(f"/api/audit/provision/{key}/")).json()
    assert "provision.provisioned" in json.dumps(history)
    past = (await http.get(f"/api/audit/provision/{key}/state", params={"version": 2})).json()
    assert "PROVISIONING" in json.dumps(past)


PLAN_AT = iso(NOON)


class TestHealth:
    async def late(self, http: httpx.AsyncClient, which: str, **query: Any) -> dict[str, str]:
        answer = await http.get(f"/api/health/live/dynamic/stream/{which}/", params=query)
        result: dict[str, str] = answer.json()
        assert answer.status_code == (415 if result else 200)
        return result

    async def test_events_that_are_not_provisioned_in_time(self, http: httpx.AsyncClient, clock: HandClock, ends: Ends) -> None:
        event = await event_with(http, scheduledProvisionAt=PLAN_AT)
        assert await self.late(http, "notprovisioned", buffer=0) == {}
        clock.forward(minutes=5)
        assert await self.late(http, "notprovisioned") == {}
        clock.forward(seconds=1)
        assert await self.late(http, "notprovisioned") == {event: PLAN_AT}
        await provision(http, event)
        assert await self.late(http, "notprovisioned") == {event: PLAN_AT}
        await ends.tell(event, 1, *UP)
        assert await self.late(http, "notprovisioned") == {}

    async def test_events_that_are_not_terminated_in_time(self, http: httpx.AsyncClient, clock: HandClock, ends: Ends) -> None:
        event = await event_with(http, scheduledTerminateAt=PLAN_AT)
        clock.forward(minutes=6)
        assert await self.late(http, "notterminated") == {}
        await provision(http, event)
        assert await self.late(http, "notterminated") == {event: PLAN_AT}
        await terminate(http, event)
        assert await self.late(http, "notterminated") == {event: PLAN_AT}
        await ends.tell(event, 2)
        assert await self.late(http, "notterminated") == {}

    @pytest.mark.parametrize("buffer", ["-1", "1000001", "a", ""])
    async def test_a_bad_buffer_is_400(self, http: httpx.AsyncClient, buffer: str) -> None:
        for which in ("notprovisioned", "notterminated"):
            answer = await http.get(f"/api/health/live/dynamic/stream/{which}/", params={"buffer": buffer})
            assert answer.status_code == 400


def test_every_state_has_its_number() -> None:
    assert [state.name for state in sorted(ProvisionState)] == [
        "SCHEDULED",
        "PROVISIONING",
        "PROVISIONING_FAILED",
        "PROVISIONED",
        "PROVISIONED_PARTIAL",
        "TERMINATING",
        "TERMINATING_FAILED",
        "TERMINATED",
    ]
