"""Settings and the schedule over HTTP: the response, and the events that were appended."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from projections.job.settings import EngineSettingsQueries
from tests.api.asking import engine_error, last, logged, topics
from tests.support.application import introduce

DEFAULTS = {
    "max_jobs": 2,
    "priority_slots": 0,
    "priority_threshold": 5,
    "schedule_interval": 60,
    "retry_delay": 5,
    "retry_limit": 3,
    "max_waiting_jobs": 100_000,
    "max_webhooks": None,
    "max_content_keys": 1_000_000,
}
SCHEDULE = "queue_scheduled_jobs"
SHOWN = {
    "class": "QueueScheduledJobs",
    "every": [60, {"first_in": 5}],
    "queue": "scheduler",
    "description": "Queues scheduled jobs whose run_at is in the past.",
}


async def put(engine: httpx.AsyncClient, name: Any, value: Any, **headers: str) -> httpx.Response:
    return await engine.post("/engine/settings", json={"name": name, "setting": value}, headers=headers)


async def test_a_setting_takes_effect_at_once_and_the_same_again_leaves_no_event(engine: httpx.AsyncClient, inner: Core) -> None:
    settings = EngineSettingsQueries(inner.database)
    assert (await engine.get("/engine/settings")).json() == DEFAULTS
    for value in (3, "3", 3.0):
        answer = await put(engine, "max_jobs", value)
        assert (answer.status_code, answer.json()) == (200, {"result": "ok", "message": "max_jobs set to 3"})
        assert (await settings.of(["admin"]))["admin"].max_jobs == 3
    assert (await put(engine, "max_jobs", 4)).json()["message"] == "max_jobs set to 4"
    assert (await engine.get("/engine/settings")).json() == {**DEFAULTS, "max_jobs": 4}
    assert await topics(inner, "setting:admin:max_jobs") == ["setting.registered", "setting.amended"]
    assert [event.data["setting"] for event in await logged(inner, "setting:admin:max_jobs")] == [3, 4]
    past = (await engine.get("/api/audit/setting/admin:max_jobs/state", params={"version": "1"})).json()
    assert past["state"] == {"client": "admin", "name": "max_jobs", "setting": 3}


async def test_settings_with_own_names_are_stored_and_shown_last(engine: httpx.AsyncClient) -> None:
    made = {"a.flag": True, "b-text": "two\nwords", "c_number": 1.5, "Max_Jobs": 9}
    for name, value in reversed(made.items()):
        assert (await put(engine, name, value)).status_code == 200
    shown = (await engine.get("/engine/settings")).json()
    assert shown == {**DEFAULTS, **made}
    assert list(shown) == [*DEFAULTS, *sorted(made)]
    assert (await put(engine, "a.flag", False)).json()["message"] == "a.flag set to false"
    assert (await put(engine, "a.flag", 0)).json()["message"] == "a.flag set to 0"


async def test_ceilings_are_set_by_admins_only_for_every_client(engine: httpx.AsyncClient, inner: Core) -> None:
    """An operator gave itself 10,000 jobs at a time, and eight slow downloads kept all others from starting."""
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    assert (await put(engine, "max_jobs", 100, **studio)).status_code == 200
    for value in (101, "101", 10_000):
        refused = await put(engine, "max_jobs", value, **studio)
        assert engine_error(refused, 403) == "Only an admin may set max_jobs above 100."
    assert engine_error(await put(engine, "max_waiting_jobs", 5, **studio), 403) == "Only an admin may set max_waiting_jobs."
    assert engine_error(await put(engine, "max_webhooks", 5, **studio), 403) == "Only an admin may set max_webhooks."
    for name, value in (("max_jobs", 500), ("max_waiting_jobs", 5)):
        set_for = {"client": "studio", "name": name, "setting": value}
        assert engine_error(await engine.post("/engine/settings", json={**set_for, "client": "admin"}, headers=studio), 400)
        assert (await engine.post("/engine/settings", json=set_for)).status_code == 200
    assert engine_error(await engine.post("/engine/settings", json={**set_for, "client": "nobody"}), 400)
    result = (await EngineSettingsQueries(inner.database).of(["studio", "admin"])).values()
    assert [(entry.max_jobs, entry.max_waiting_jobs) for entry in result] == [(500, 5), (2, 100_000)]


async def test_settings_belong_to_the_client_of_the_header(engine: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}
    await put(engine, "max_jobs", 7)
    await put(engine, "retry_delay", 0.5, **studio)
    await engine.put("/engine/scheduler", json={"schedule": SCHEDULE, "active": False}, headers=studio)
    settings = EngineSettingsQueries(inner.database)
    result = await settings.of(["admin", "studio", "nobody"])
    assert [(entry.max_jobs, entry.retry_delay) for entry in result.values()] == [(7, 5), (2, 0.5), (2, 5)]
    assert await settings.schedule_active(["admin", "studio", "nobody"]) == {"admin": True, "studio": False, "nobody": True}
    assert (await settings.of([]), await settings.schedule_active([])) == ({}, {})
    assert (await engine.get("/engine/settings", headers=studio)).json() == {**DEFAULTS, "retry_delay": 0.5}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": "max_jobs", "setting": -1}, "setting: max_jobs is a whole number, 0 to 10000"),
        ({"name": "max_jobs", "setting": None}, "setting: is required"),
        ({"name": "priority_threshold", "setting": 12}, "setting: priority_threshold is a whole number, 1 to 11"),
        ({"name": "retry_delay", "setting": "soon"}, "setting: retry_delay is a number, 0 to 86400"),
        ({"name": "mine", "setting": {"a": 1}}, "setting: must be a number, a text, true or false"),
        ({"name": "mine", "setting": "x" * 1001}, "setting: must have at most 1000 characters"),
        ({"name": "mine"}, "setting: is required"),
        ({"setting": 1}, "name: is required"),
        ({}, "name: is required; setting: is required"),
        ({"name": "s3_secret", "setting": "hunter2"}, "name: settings are not a place for secrets"),
        ({"name": "mine", "NAME": "other", "setting": 1}, "name: is there twice, in two spellings"),
    ],
)
async def test_an_invalid_setting_is_400(engine: httpx.AsyncClient, inner: Core, body: Any, error: str) -> None:
    before = await last(inner)
    assert engine_error(await engine.post("/engine/settings", json=body), 400) == error
    assert await last(inner) == before


async def test_names_of_settings_have_a_limited_alphabet(engine: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for name in ("", " ", "a b", "a:b", "a/b", "a\n", "é", "x" * 101, 7, None, ["a"], "a\x00"):
        assert engine_error(await put(engine, name, 1), 400).startswith("name: ")
    assert await last(inner) == before
    assert (await put(engine, "x" * 100, 1)).status_code == 200


async def test_a_repeat_with_an_idempotency_key_sets_once(engine: httpx.AsyncClient, inner: Core) -> None:
    first = await put(engine, "max_jobs", 3, **{"Idempotency-Key": "k"})
    await put(engine, "max_jobs", 5)
    before = await last(inner)
    again = await put(engine, "max_jobs", 3, **{"Idempotency-Key": "k"})
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    assert engine_error(await put(engine, "max_jobs", 4, **{"Idempotency-Key": "k"}), 409)
    assert engine_error(await put(engine, "max_jobs", 4, **{"If-Match": '"9"'}), 412)
    assert await last(inner) == before


async def test_the_schedule_shows_the_interval_and_whether_it_is_active(engine: httpx.AsyncClient, inner: Core) -> None:
    assert (await engine.get("/engine/schedules")).json() == {"result": "ok", "schedules": {SCHEDULE: SHOWN}}
    await put(engine, "schedule_interval", 90)
    for active in (False, "0", 0):
        answer = await engine.put("/engine/scheduler", json={"schedule": SCHEDULE, "active": active, "more": 1})
        assert (answer.status_code, answer.json()) == (200, {"result": "ok", "schedules": [SCHEDULE]})
    shown = (await engine.get("/engine/schedules/")).json()["schedules"][SCHEDULE]
    assert shown == {**SHOWN, "every": [90, {"first_in": 5}], "description": f"{SHOWN['description']} It is inactive."}
    await engine.put("/engine/scheduler", json={"SCHEDULE": SCHEDULE, "Active": "TRUE"})
    assert (await engine.get("/engine/schedules")).json()["schedules"][SCHEDULE]["description"] == SHOWN["description"]
    stream = f"schedule:admin:{SCHEDULE}"
    assert [(event.topic, event.data["active"]) for event in await logged(inner, stream)] == [
        ("schedule.registered", False),
        ("schedule.amended", True),
    ]
    past = (await engine.get(f"/api/audit/schedule/admin:{SCHEDULE}/state", params={"version": "1"})).json()
    assert past["state"] == {"client": "admin", "schedule": SCHEDULE, "active": False}


async def test_an_unknown_schedule_is_400(engine: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    for body, field in (
        ({"schedule": "other", "active": True}, "schedule"),
        ({"schedule": None, "active": True}, "schedule"),
        ({"active": True}, "schedule"),
        ({"schedule": SCHEDULE}, "active"),
        ({"schedule": SCHEDULE, "active": None}, "active"),
        ({"schedule": SCHEDULE, "active": "perhaps"}, "active"),
    ):
        assert engine_error(await engine.put("/engine/scheduler", json=body), 400).startswith(f"{field}: ")
    assert SCHEDULE in engine_error(await engine.put("/engine/scheduler", json={"schedule": "other", "active": True}), 400)
    assert await last(inner) == before
