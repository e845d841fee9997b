"""Copying and moving custom properties, by a GET that writes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import assert_problem, fields_of, last, logged
from tests.api.media.owners import OWNERS, Owner
from tests.support.application import introduce

pytestmark = pytest.mark.parametrize("of", OWNERS, ids=lambda of: of.owner_kind)


async def clone(http: httpx.AsyncClient, of: Owner, source: str, target: str, **more: Any) -> httpx.Response:
    return await http.get(f"{of.path}/clone/", params={of.source_id: source, of.target_id: target, **more})


async def test_a_clone_copies_all_and_existing_pairs_take_the_value_of_the_source(
    http: httpx.AsyncClient, inner: Core, of: Owner
) -> None:
    source, target = await of.make(http), await of.make(http, "News")
    for owner, key, value in ((source, "a", "1"), (source, "b", None), (target, "b", "2"), (target, "c", "3")):
        await of.put(http, owner, "x", key, value=value)
    retained = await of.of(http, source)
    there = {record["key"]: record["id"] for record in await of.of(http, target)}
    answer = await clone(http, of, source, target)
    copied, changed, other = await of.of(http, target)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        of.source_id: source,
        of.target_id: target,
        "removeSource": False,
        "customProperties": [copied, changed],
    }
    assert copied["id"] not in {record["id"] for record in retained}
    assert [copied, changed, other] == [
        of.shown(copied["id"], target, "x", "a", "1"),
        of.shown(there["b"], target, "x", "b", None),
        of.shown(there["c"], target, "x", "c", "3"),
    ]
    assert await of.of(http, source) == retained
    before = await last(inner)
    assert (await clone(http, of, source, target)).json() == answer.json()
    assert await last(inner) == before


async def test_remove_source_moves_in_one_append(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    source, target = await of.make(http), await of.make(http, "News")
    for key in ("a", "b"):
        await of.put(http, source, "x", key, value=key)
    answer = await clone(http, of, source, target, REMOVESOURCE="true")
    assert (answer.json()["removeSource"], answer.json()["customProperties"]) == (True, await of.of(http, target))
    assert [record["value"] for record in await of.of(http, target)] == ["a", "b"]
    assert await of.of(http, source) == []
    happened = (await logged(inner))[-4:]
    assert [event.topic.split(".")[1] for event in happened] == ["registered", "registered", "deleted", "deleted"]
    assert len({event.cause["command_id"] for event in happened}) == 1


async def test_a_clone_to_itself_changes_nothing(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    await of.put(http, owner, value="v")
    before = await last(inner)
    for remove in ("true", "false"):
        answer = await clone(http, of, owner, owner, removeSource=remove)
        assert (answer.status_code, answer.json()["customProperties"]) == (200, await of.of(http, owner))
    assert len(await of.of(http, owner)) == 1
    assert await last(inner) == before


async def test_a_clone_of_nothing_copies_nothing(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    source, target = await of.make(http), await of.make(http, "News")
    before = await last(inner)
    assert (await clone(http, of, source, target, removeSource=True)).json()["customProperties"] == []
    assert await last(inner) == before


async def test_both_ids_are_required_and_it_takes_an_operator(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    assert fields_of(await http.get(f"{of.path}/clone/")) == [of.source_id, of.target_id]
    assert fields_of(await http.get(f"{of.path}/clone", params={of.source_id: owner})) == [of.target_id]
    assert fields_of(await clone(http, of, "x", owner)) == [of.source_id]
    assert fields_of(await clone(http, of, owner, owner, removeSource="perhaps")) == ["removeSource"]
    for role, status in (("viewer", 403), ("auditor", 403), ("operator", 200)):
        answer = await http.get(
            f"{of.path}/clone/",
            params={of.source_id: owner, of.target_id: owner},
            headers={"API-KEY": await introduce(inner, f"the-{role}", role)},
        )
        assert answer.status_code == status
        if status == 403:
            assert_problem(answer, 403)


async def test_a_head_request_does_not_clone(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    source, target = await of.make(http), await of.make(http, "Other")
    before = await last(inner)
    answer = await http.head(f"{of.path}/clone/", params={of.source_id: source, of.target_id: target})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert await last(inner) == before
