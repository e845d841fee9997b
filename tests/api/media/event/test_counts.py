"""The number of Events in each state: docs/reference/api/events.md#counts."""

from __future__ import annotations

from typing import Any

import httpx

from api.wiring.core import Core
from domain.event.values import EventState
from projections.kernel.sql.tallies import Tallies
from tests.api.asking import add, assert_problem


async def counts(http: httpx.AsyncClient, **query: str) -> dict[str, Any]:
    answer = await http.get("/api/event/counts", params=query)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert [state["state"] for state in shown["states"]] == sorted(EventState)
    assert shown["total"] == sum(state["count"] for state in shown["states"])
    return {state["name"]: state["count"] for state in shown["states"] if state["count"]}


async def test_events_are_counted_by_state_before_and_after_totals_are_added_up(http: httpx.AsyncClient, inner: Core) -> None:
    assert await counts(http) == {}
    first = await add(http, title="a")
    await add(http, title="b", eventState="VOD_PRIVATE")
    await add(http, title="c", eventState="VOD_PRIVATE")
    assert await counts(http) == {"PRE_LIVE": 1, "VOD_PRIVATE": 2}
    await Tallies(inner.database).add_up()
    await http.delete(f"/api/event/{first['id']}")
    assert await counts(http) == {"VOD_PRIVATE": 2}
    assert await counts(http, deleted="true") == {"PRE_LIVE": 1}
    assert_problem(await http.get("/api/event/counts", params={"deleted": "perhaps"}), 400)
