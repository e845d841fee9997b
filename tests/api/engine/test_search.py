"""Searching for jobs and reading one job, without a key: docs/reference/api/job-engine.md#search."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import Any

import httpx
import pytest

from api.engine.responses import SingleJob
from api.wiring.core import Core
from domain.job.values import JobState
from projections.job.queries import MOST_PARAMETERS, ORDERS, UNPAGED
from tests.api.asking import engine_error, logged
from tests.api.engine.jobs_given import FETCH, FUTURE, PROBE, bring, complete, fail, openly, single, start, submit
from tests.support.application import introduce
from tests.support.clock import HandClock

SUMMARY = ["id", "client", "workflow", "priority", "position", "created_at", "updated_at", "run_at", "queue_state", "failed"]
TOLD = ["reason", "started_at", "ended_at"]


async def search_ids(engine: httpx.AsyncClient, **query: Any) -> list[int]:
    answer = await openly(engine, "/engine/jobs", **query)
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()]


async def studio(inner: Core) -> dict[str, str]:
    return {"API-KEY": await introduce(inner, "studio", "operator"), "client": "studio"}


async def test_without_parameters_the_last_ten_are_found(engine: httpx.AsyncClient) -> None:
    assert await search_ids(engine) == []
    jobs = [await submit(engine) for _ in range(12)]
    assert await search_ids(engine) == jobs[:1:-1]
    assert await search_ids(engine, items=3) == jobs[:8:-1]
    for many in ("1000", "1001", "9223372036854775807"):
        assert await search_ids(engine, items=many) == jobs[::-1]
    shown = (await openly(engine, "/engine/jobs", items=1)).json()[0]
    assert sorted(shown) == sorted([*SUMMARY, *TOLD, "parameters"])
    alone = await single(engine, jobs[-1])
    assert alone.pop("top_of_queue") is False
    assert alone == shown


async def test_a_list_has_a_bounded_number_of_bytes_of_parameters(engine: httpx.AsyncClient) -> None:
    """120 jobs of a megabyte were 122 MB for anybody who asked without a key."""
    large, count = {**FETCH, "custom_data": "x" * 65_000}, MOST_PARAMETERS // 65_000 + 6
    jobs = await asyncio.gather(*(submit(engine, large) for _ in range(count)))
    answer = await engine.get("/engine/jobs", params={"items": 1000})
    assert len(answer.content) < MOST_PARAMETERS + 1000 * count
    shown = answer.json()
    assert [job["id"] for job in shown] == sorted(jobs, reverse=True)
    whole = [job["parameters"] is not None for job in shown]
    assert whole == [True] * (count - whole.count(False)) + [False] * whole.count(False), "the first have them"
    assert 6 <= whole.count(False) <= 8
    assert (await single(engine, shown[-1]["id"]))["parameters"] == large


async def test_each_state_is_found_by_its_number_or_name(engine: httpx.AsyncClient, inner: Core) -> None:
    jobs = {state: await bring(engine, inner, state) for state in JobState}
    for state, job in jobs.items():
        assert await search_ids(engine, state=int(state)) == [job]
        assert await search_ids(engine, State=state.name.lower()) == [job]


async def test_failed_jobs_are_completed_ones(engine: httpx.AsyncClient, inner: Core) -> None:
    good, bad, queued = await submit(engine), await submit(engine), await submit(engine)
    await complete(inner, good)
    await fail(inner, bad)
    assert await search_ids(engine, failed="true") == [bad]
    reported = {job["id"]: job for job in (await openly(engine, "/engine/jobs")).json()}
    assert [reported[job]["reason"] for job in (good, bad, queued)] == [None, "the task fetch failed: no such host", None]
    assert [reported[job]["started_at"] is None for job in (good, bad, queued)] == [False, False, True]
    assert [reported[job]["ended_at"] is None for job in (good, bad, queued)] == [False, False, True]
    assert await search_ids(engine, failed="0") == [queued, good]
    assert await search_ids(engine, failed="1", state=2) == [bad]
    assert await search_ids(engine, failed="false", state=2) == [good]
    assert await search_ids(engine, state=2) == [bad, good]
    for state in (0, 1, 3, 4, 5, 6):
        for failed in ("true", "false"):
            assert await search_ids(engine, failed=failed, state=state) == []


async def test_the_time_of_creation_is_bounded_on_both_sides(engine: httpx.AsyncClient, clock: HandClock) -> None:
    jobs = []
    for _ in range(3):
        jobs.append(await submit(engine))
        clock.forward(hours=1)
    assert await search_ids(engine, **{"from": "2031-01-02T13:00:00.000Z"}) == [jobs[2], jobs[1]]
    assert await search_ids(engine, to="2031-01-02T13:00:00.000") == [jobs[1], jobs[0]]
    assert await search_ids(engine, **{"from": "2031-01-02T14:30:00+01:00", "to": "2031-01-03"}) == [jobs[2]]
    assert await search_ids(engine, **{"from": "2031-01-03", "to": "2031-01-02"}) == []


async def test_search_finds_parts_of_texts_in_any_case(engine: httpx.AsyncClient) -> None:
    film = await submit(engine, {**FETCH, "content_id": "Final-2031", "custom_data": {"title": ["Größe 100%_\\"]}})
    other = await submit(engine, PROBE, workflow="probe_media")
    for part in ("final", "INAL-2", "größe", "100%", "%_\\", "origin.test/A.MP4", "HTTP_fetch"):
        assert await search_ids(engine, search=part) == [film], part
    assert await search_ids(engine, search="film") == [other]
    assert await search_ids(engine, search="_media") == [other]
    for part in ("final%", "_inal", "title", "admin", "'; DROP TABLE job_view; --"):
        assert await search_ids(engine, search=part) == [], part
    assert await search_ids(engine, search="") == [other, film]


async def test_job_ids_are_separated_by_commas_or_repeated(engine: httpx.AsyncClient) -> None:
    a, b, c = [await submit(engine) for _ in range(3)]
    assert await search_ids(engine, job_ids=f"{a}, {c},987654") == [c, a]
    assert await search_ids(engine, job_ids=[str(b), str(c)], asc=1) == [b, c]
    assert await search_ids(engine, job_ids="987654") == []


async def test_filters_combine_with_and(engine: httpx.AsyncClient, inner: Core) -> None:
    a, b = await submit(engine), await submit(engine, priority=1)
    await submit(engine, headers=await studio(inner))
    await start(inner, b)
    assert await search_ids(engine, client="admin", state=0, search="film", job_ids=f"{a},{b}") == [a]


async def test_the_client_in_query_and_header_must_both_match(engine: httpx.AsyncClient, inner: Core) -> None:
    ours, theirs = await submit(engine), await submit(engine, headers=await studio(inner))
    assert await search_ids(engine) == [theirs, ours]
    assert await search_ids(engine, client="studio") == [theirs]
    assert await search_ids(engine, client="nobody") == []
    for query, named, expected in (
        ({}, "admin", [theirs, ours]),
        ({"client": "studio"}, "admin", [theirs]),
        ({}, "studio", [theirs]),
        ({}, "nobody", []),
        ({"client": "admin"}, "admin", [ours]),
        ({"client": "admin"}, "studio", []),
    ):
        answer = await engine.get("/engine/jobs", params=query, headers={"client": named, "API-KEY": "wrong"})
        assert [job["id"] for job in answer.json()] == expected
    assert (await engine.get(f"/engine/jobs/{theirs}", headers={"client": "studio"})).status_code == 200
    assert engine_error(await engine.get(f"/engine/jobs/{ours}", headers={"client": "studio"}), 400)


async def test_an_admin_reads_and_changes_the_jobs_of_every_client(engine: httpx.AsyncClient, inner: Core) -> None:
    them, boss = await studio(inner), {"API-KEY": await introduce(inner, "boss", "admin"), "client": "boss"}
    job = await submit(engine, headers=them)
    for admin in ({"client": "admin"}, boss):
        for path in (f"/engine/jobs/{job}", f"/engine/logs/{job}", "/engine/jobs", "/engine/dashboard"):
            answer = await engine.get(path, headers=admin)
            assert (answer.status_code, f'"id":{job},' in answer.text or f'"job_id":{job},' in answer.text) == (200, True), path
    changed = await engine.put(f"/engine/job/{job}", json={"priority": 2}, headers=boss)
    assert changed.json() == {"id": job, "result": ["priority updated from 5 to 2"]}
    again = await engine.post(f"/engine/jobs/{job}/rerun", headers=boss)
    assert (await single(engine, again.json()["id"]))["client"] == "studio"
    facts = [(event.topic, event.cause["actor"]) for event in await logged(inner, f"job:{job}")]
    assert facts == [("job.accepted", "studio"), ("job.priority_changed", "boss"), ("job.broken", "boss")]
    demoted = await engine.put("/api/client/boss", json={"roles": ["operator"]})
    assert demoted.status_code == 200, demoted.text
    assert engine_error(await engine.get(f"/engine/jobs/{job}", headers={"client": "boss"}), 400)


def test_a_list_is_ordered_by_every_property_but_one() -> None:
    assert set(SingleJob.model_fields) - set(ORDERS) == {"top_of_queue"}


@pytest.mark.parametrize("asc", ["0", "1"])
@pytest.mark.parametrize("name", list(ORDERS))
async def test_jobs_are_ordered_by_any_property_nulls_last(engine: httpx.AsyncClient, inner: Core, name: str, asc: str) -> None:
    them = await studio(inner)
    for priority, headers in ((3, None), (9, them), (3, them), (1, None), (5, None)):
        await submit(engine, headers=headers, priority=priority)
    await submit(engine, PROBE, workflow="probe_media", run_at=FUTURE)
    await submit(engine, PROBE, workflow="probe_media", run_at="2031-05-01")
    await fail(inner, await submit(engine, {**PROBE, "content_id": "a"}, workflow="probe_media"))
    descending = asc == "0"
    shown = (await openly(engine, "/engine/jobs", order_by=name.upper(), asc=asc)).json()
    assert len(shown) == 8

    def key(job: dict[str, Any]) -> tuple[Any, Any]:
        return (str(job[name]) if name == "parameters" else job[name], job["id"])

    reported = [job for job in shown if job[name] is not None]
    if name != "parameters":
        assert reported == sorted(reported, key=key, reverse=descending)
    assert shown == reported + sorted((job for job in shown if job[name] is None), key=lambda job: job["id"], reverse=descending)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"items": "0"}, "items"),
        ({"items": "-1"}, "items"),
        ({"items": "many"}, "items"),
        ({"items": "9" * 30}, "items"),
        ({"order_by": "top_of_queue"}, "order_by"),
        ({"order_by": "id; DROP TABLE job_view"}, "order_by"),
        ({"asc": "2"}, "asc"),
        ({"asc": "up"}, "asc"),
        ({"state": "7"}, "state"),
        ({"state": "0,1"}, "state"),
        ({"from": "soon"}, "from"),
        ({"to": "2031-13-01"}, "to"),
        ({"failed": "perhaps"}, "failed"),
        ({"job_ids": "1,x"}, "job_ids[1]"),
        ({"job_ids": "1e3"}, "job_ids[0]"),
        ({"job_ids": "9" * 30}, "job_ids[0]"),
    ],
)
async def test_an_invalid_parameter_is_400(engine: httpx.AsyncClient, query: dict[str, str], field: str) -> None:
    assert engine_error(await openly(engine, "/engine/jobs", **query), 400).startswith(field.partition("[")[0])


async def test_an_unknown_job_is_400_without_an_id(engine: httpx.AsyncClient) -> None:
    for number in ("987654", "-1", "x", "1.0", "9" * 30):
        answer = await openly(engine, f"/engine/jobs/{number}")
        assert engine_error(answer, 400)
        assert "id" not in answer.json()


async def test_positions_are_the_order_of_starting_in_every_query(engine: httpx.AsyncClient, inner: Core) -> None:
    """100 jobs of three clients in all states: every way of asking agrees with the queue counted by hand."""
    rng = random.Random(7)
    callers = {"admin": None, "studio": await studio(inner)}
    callers["other"] = {"API-KEY": await introduce(inner, "other", "operator"), "client": "other"}
    jobs: dict[int, tuple[str, int]] = {}
    for _ in range(100):
        name, priority = rng.choice(list(callers)), rng.randint(1, 10)
        job = await submit(engine, headers=callers[name], priority=priority)
        jobs[job] = (name, priority)
        await _moved(engine, inner, job, rng.choice(["queued", "queued", "queued", "paused", "broken", "scheduled", "started"]))
    every = (await openly(engine, "/engine/jobs", items=1000)).json()
    queues = defaultdict(list)
    for job in sorted((job for job in every if job["queue_state"] == "queued"), key=lambda job: (job["priority"], job["id"])):
        queues[job["client"]].append(job["id"])
    expected = {job["id"]: 0 for job in every} | {job: place for queue in queues.values() for place, job in enumerate(queue, 1)}
    assert {job["id"]: job["position"] for job in every} == expected
    assert min(map(len, queues.values())) > 5
    for job in expected:
        shown = await single(engine, job)
        assert (shown["position"], shown["top_of_queue"]) == (expected[job], expected[job] == 1)
    for query in ({"items": 7}, {"search": "film", "asc": 1}, {"client": "studio", "order_by": "position"}, {"state": 0}):
        for job in (await openly(engine, "/engine/jobs", **query)).json():
            assert job["position"] == expected[job["id"]]
    board = (await openly(engine, "/engine/dashboard")).json()
    assert {job["id"]: job["position"] for job in board["queued"]} == {job: place for job, place in expected.items() if place}


async def _moved(engine: httpx.AsyncClient, inner: Core, job: int, state: str) -> None:
    if state == "started":
        await start(inner, job, slot=job)
    elif state == "scheduled":
        await engine.put(f"/engine/job/{job}", json={"run_at": FUTURE})
    elif state != "queued":
        await engine.put(f"/engine/job/{job}", json={"queue_state": state})


async def test_jobs_are_counted_by_state_and_workflow_as_the_list_shows_them(engine: httpx.AsyncClient, inner: Core) -> None:
    first, second = [await submit(engine) for _ in range(2)]
    await submit(engine, PROBE, workflow="probe_media")
    await submit(engine, headers=await studio(inner))
    await fail(inner, first)
    await complete(inner, second)
    none = dict.fromkeys(("started", "pending", "broken", "scheduled", "paused"), 0)
    both = ["http_fetch_verify", "probe_media"]
    for client, query, total, queued, workflows in (
        (None, {}, 4, 2, both),
        ("admin", {}, 4, 2, both),
        ("studio", {}, 1, 1, both[:1]),
        (None, {"client": "studio"}, 1, 1, both[:1]),
        (None, {"workflow": "probe_media"}, 1, 1, both[1:]),
        ("studio", {"workflow": "probe_media"}, 0, 0, []),
    ):
        headers = {} if client is None else {"client": client}
        counted = (await engine.get("/engine/jobs/counts", params=query, headers={"API-KEY": "", **headers})).json()
        each = counted.pop("workflows")
        ended = total - queued
        assert counted == {"total": total, "queued": queued, "completed": ended, "failed": min(ended, 1), **none}
        assert [entry.pop("workflow") for entry in each] == workflows
        assert all(sum(entry[name] for entry in each) == counted[name] for name in counted)


@pytest.mark.parametrize("asc", [0, 1])
@pytest.mark.parametrize("order_by", [name for name in ORDERS if name not in UNPAGED])
async def test_a_list_is_followed_to_its_end_by_the_header_link(
    engine: httpx.AsyncClient, inner: Core, order_by: str, asc: int
) -> None:
    """In every order, where values are equal or absent too, and beside jobs that are submitted meanwhile."""
    jobs = [await submit(engine, priority=1 + n % 3, run_at=None if n % 4 else FUTURE) for n in range(9)]
    headers = await studio(inner)
    jobs += [await submit(engine, headers=headers) for _ in range(2)]
    await fail(inner, jobs[1])
    whole = await search_ids(engine, items=100, order_by=order_by, asc=asc, to=FUTURE)
    assert sorted(whole) == jobs
    seen: list[int] = []
    address: str | None = f"/engine/jobs?items=4&order_by={order_by}&asc={asc}&to={FUTURE}"
    pages = 0
    while address is not None and pages < 5:
        answer = await openly(engine, address)
        assert answer.status_code == 200, answer.text
        seen += [job["id"] for job in answer.json()]
        address = answer.links.get("next", {}).get("url")
        pages += 1
    assert (seen, pages) == (whole, 3)


async def test_pages_of_one_state_are_those_of_all_clients(engine: httpx.AsyncClient, inner: Core) -> None:
    own = [await submit(engine) for _ in range(3)]
    headers = await studio(inner)
    others = [await submit(engine, headers=headers) for _ in range(3)]
    for job in (*own[:2], *others[:2]):
        await fail(inner, job)
    failed = [others[1], others[0], own[1], own[0]]
    for query in ({"failed": True}, {"state": "completed"}, {"state": "completed", "failed": True}):
        answer = await openly(engine, "/engine/jobs", items=3, **query)
        assert [job["id"] for job in answer.json()] == failed[:3]
        assert [job["id"] for job in (await openly(engine, answer.links["next"]["url"])).json()] == failed[3:]
    assert await search_ids(engine, failed=False) == [others[2], own[2]]


@pytest.mark.parametrize(
    "query",
    [
        {"after": "last"},
        {"after": "-1"},
        {"after": "1~"},
        {"after": "1~x"},
        {"after": str(2**63)},
        {"after": "1~soon", "order_by": "run_at"},
        {"after": "1~maybe", "order_by": "failed"},
        {"after": f"1~{'a' * 1001}", "order_by": "client"},
        {"after": "1", "order_by": "parameters"},
    ],
)
async def test_a_place_that_no_link_has_is_refused(engine: httpx.AsyncClient, query: dict[str, str]) -> None:
    answer = await openly(engine, "/engine/jobs", **query)
    assert (answer.status_code, answer.headers.get("link")) == (400, None)
    assert "after" in answer.json()["error"]
