"""GET /api/audit/{aggregate}/{id}/diff: what changed between two moments, by whom."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from domain.kernel.clock import iso
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, last, patch, replace
from tests.api.audit.test_past_states import a_later_millisecond, recorded
from tests.support.application import introduce


async def diff(http: httpx.AsyncClient, key: str, **asked: Any) -> dict[str, dict[str, Any]]:
    answer = await http.get(f"/api/audit/event/{key}/diff", params=asked)
    assert answer.status_code == 200, answer.text
    return {change["field"]: change for change in answer.json()["changes"]}


async def test_each_field_has_its_last_change(http: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator")}
    key = (await add(http, Title="a"))["id"]
    await patch(http, key, replace("/Title", "b"))
    await http.put(f"/api/event/state/{key}", json={"state": 2}, headers={**studio, "X-Transaction-ID": "t"})
    await patch(http, key, replace("/Title", "c"))
    result = await diff(http, key, **{"from": 1, "to": 4})
    title, state = result["title"], result["state"]
    assert (title["before"], title["after"], title["version"], title["actor"]) == ("a", "c", 4, "admin")
    assert (state["before"], state["after"], state["version"], state["actor"], state["transactionId"]) == (0, 2, 3, "studio", "t")
    assert "description" not in result
    back = await diff(http, key, **{"from": 4, "to": 1})
    assert (back["title"]["before"], back["title"]["after"], back["title"]["version"]) == ("c", "a", 4)
    assert await diff(http, key, **{"from": 2, "to": 2}) == {}
    assert set(await diff(http, key, **{"from": 3})) >= {"title"}


async def test_times_are_moments_too_and_members_have_dots(http: httpx.AsyncClient, inner: Core) -> None:
    key = (await add(http, Title="a"))["id"]
    room = await add_room(http, "Hall")
    begun = iso(await recorded(inner, await last(inner)))
    await a_later_millisecond(inner)
    await patch(http, key, replace("/Title", "b"), replace("/RoomId", room))
    await http.patch(f"/api/room/{room}", json=[replace("/Name", "Arena")], headers={"content-type": "application/json-patch+json"})
    result = await diff(http, key, **{"from": begun})
    assert result["title"]["after"] == "b"
    assert all(not isinstance(change["after"], dict) or not change["after"] for change in result.values())


@pytest.mark.parametrize("asked", [{"from": 9}, {"from": 0}, {"from": 1, "to": 9}, {"from": "2001-01-01"}])
async def test_what_never_was_is_404(http: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    key = (await add(http))["id"]
    assert_problem(await http.get(f"/api/audit/event/{key}/diff", params=asked), 404)


async def test_bad_input(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    bad: list[dict[str, Any]] = [{}, {"from": "x"}, {"from": 1, "to": ""}, {"from": "9" * 30}]
    for asked in bad:
        assert_problem(await http.get(f"/api/audit/event/{key}/diff", params=asked), 400)
    for address in (f"/api/audit/event/{UNKNOWN}/diff", f"/api/audit/nothing/{key}/diff"):
        assert_problem(await http.get(address, params={"from": 1}), 404)
