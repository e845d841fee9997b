"""Consumers over HTTP: their positions and parked records. The replay itself is tested with the consumers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import add_room, assert_problem, fields_of, last
from tests.projections.consuming import MEMBER, consumer, park, wanted

PATH = "/api/consumer"
A, B = "event:0f0e0d0c-0b0a-4908-8706-050403020100", "client:0F0E0D0C-0B0A-4908-8706-050403020101"


@pytest.fixture
async def parked(inner: Core) -> None:
    await consumer(inner, "webhooks", 0)
    await consumer(inner, "other", 0)
    await park(inner, "webhooks", (1, A), (2, B), (3, A))
    await park(inner, "other", (1, A))


async def listed(http: httpx.AsyncClient, path: str = "", **query: Any) -> list[dict[str, Any]]:
    answer = await http.get(f"{PATH}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, Any]] = answer.json()
    return shown


async def test_consumers_are_listed_with_their_lag_members_and_parked_records(http: httpx.AsyncClient, inner: Core) -> None:
    assert await listed(http) == []
    await add_room(http)
    head = await last(inner)
    await consumer(inner, "webhooks", head - 1)
    await consumer(inner, "deliveries", None, None)
    await consumer(inner, "b", head, 1, head)
    await inner.database.execute("DELETE FROM consumer_members WHERE consumer = 'b'")
    await park(inner, "b", (2, A), (1, A))
    member = {"id": str(MEMBER), "host": "studio-1", "busy": 2, "seenAt": "2031-01-02T12:00:00.000Z"} | {
        "failingSeconds": None,
        "fault": None,
        "readsLogSeconds": None,
    }
    none = {"parked": 0, "oldestParkedAt": None}
    assert await listed(http) == [
        {
            "name": "b", "shards": 3, "held": 0, "position": 1, "head": head, "lag": head - 1, "members": [], "parked": 2,
            "oldestParkedAt": "2031-01-02T12:00:01.000Z",
        },
        {"name": "deliveries", "shards": 2, "held": 0, "position": None, "head": head, "lag": None, "members": [member], **none},
        {"name": "webhooks", "shards": 1, "held": 0, "position": head - 1, "head": head, "lag": 1, "members": [member], **none},
    ]  # fmt: skip


async def test_parked_records_are_listed_in_the_logs_order(http: httpx.AsyncClient, parked: None) -> None:
    shown = await listed(http, "webhooks/parked/")
    assert shown[0] == {
        "position": 1,
        "aggregate": "event",
        "id": A[6:],
        "type": "event.described",
        "error": "ValueError: no",
        "attempts": 1,
        "replay": False,
        "parkedAt": "2031-01-02T12:00:01.000Z",
    }
    assert [entry["position"] for entry in shown] == [1, 2, 3]
    assert [entry["position"] for entry in await listed(http, "webhooks/parked", after=1, pageSize=1)] == [2]
    assert await listed(http, "webhooks/parked", after=3) == []
    for query, field in (("after=-1", "after"), ("after=x", "after"), ("pageSize=0", "pageSize")):
        assert fields_of(await http.get(f"{PATH}/webhooks/parked/?{query}")) == [field]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"aggregate": "event", "id": A[6:]}, [1, 3]),
        ({"aggregate": "event", "id": A[6:].upper()}, [1, 3]),
        ({"Aggregate": "client", "ID": B[7:]}, [2]),
        ({"aggregate": "client", "id": B[7:].lower()}, []),
        ({"aggregate": "nonsense", "id": "%"}, []),
    ],
)
async def test_parked_records_are_tried_again(
    http: httpx.AsyncClient, inner: Core, parked: None, query: dict[str, str], expected: list[int]
) -> None:
    before = await last(inner)
    answer = await http.post(f"{PATH}/webhooks/parked/replay/", params=query)
    assert (answer.status_code, answer.json()) == (200, {"replaying": len(expected)})
    assert (await wanted(inner, "webhooks"), await wanted(inner, "other")) == (expected, [])
    assert [entry["position"] for entry in await listed(http, "webhooks/parked/") if entry["replay"]] == expected
    assert await last(inner) == before


@pytest.mark.parametrize(("query", "field"), [("aggregate=event", "id"), ("id=x", "aggregate")])
async def test_a_kind_without_an_id_is_400(http: httpx.AsyncClient, inner: Core, parked: None, query: str, field: str) -> None:
    assert fields_of(await http.post(f"{PATH}/webhooks/parked/replay/?{query}")) == [field]
    assert await wanted(inner, "webhooks") == []


async def test_an_unknown_consumer_is_404(http: httpx.AsyncClient, inner: Core, parked: None) -> None:
    for name in ("nobody", "WEBHOOKS", "%25", "a%2Fb"):
        assert_problem(await http.get(f"{PATH}/{name}/parked/"), 404)
        assert_problem(await http.post(f"{PATH}/{name}/parked/replay/"), 404)
    assert await wanted(inner, "webhooks") == []


async def test_a_consumer_that_nobody_runs_is_forgotten_with_its_parked_records(http: httpx.AsyncClient, inner: Core) -> None:
    for name in ("relay one", "relay other", "windows_capture"):  # their processes have died
        await consumer(inner, name, 3 if name.startswith("relay") else None)
        await park(inner, name, (1, A))
    await inner.database.execute("UPDATE consumer_members SET seen_at = clock_timestamp() - interval '1 min'")
    for name in ("relay one", "windows_capture"):
        answer = await http.delete(f"{PATH}/{name}")
        assert (answer.status_code, answer.json()) == (200, {"name": name, "parked": 1})
        assert_problem(await http.delete(f"{PATH}/{name}"), 404)
    assert [(each["name"], each["parked"]) for each in await listed(http)] == [("relay other", 1)]
    assert await inner.database.rows("SELECT consumer FROM consumer_members") == [("relay other",)]
    assert await inner.database.rows("SELECT consumer FROM parked_records") == [("relay other",)]


@pytest.mark.parametrize(
    "runs",
    [
        "UPDATE consumer_members SET seen_at = clock_timestamp()",
        "UPDATE consumer_shards SET held_until = clock_timestamp() + interval '5 s' WHERE shard = 1",
    ],
    ids=["has a process", "is held"],
)
async def test_a_consumer_that_runs_is_not_forgotten(http: httpx.AsyncClient, inner: Core, runs: str) -> None:
    await consumer(inner, "relay one", 3, 3)
    await park(inner, "relay one", (1, A))
    await inner.database.execute("UPDATE consumer_members SET seen_at = clock_timestamp() - interval '1 min'")
    await inner.database.execute(runs)
    answer = await http.delete(f"{PATH}/relay one")
    assert_problem(answer, 409)
    assert "relay one is running: stop the processes" in answer.json()["detail"]
    assert [(each["shards"], each["parked"]) for each in await listed(http)] == [(2, 1)]


async def test_a_consumer_that_would_repeat_everything_is_not_forgotten(http: httpx.AsyncClient, parked: None) -> None:
    answer = await http.delete(f"{PATH}/webhooks")
    assert_problem(answer, 409)
    assert "would repeat its work" in answer.json()["detail"]
