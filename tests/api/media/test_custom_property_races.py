"""Requests at the same time on the same custom properties: no pair is stored twice, and no change is lost."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import logged, new_id
from tests.api.media.owners import OWNERS, Owner

CALLERS = 12
pytestmark = pytest.mark.parametrize("of", OWNERS, ids=lambda of: of.owner_kind)


async def test_many_requests_for_one_pair_make_one_property(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    shown = await asyncio.gather(*(of.put(http, owner, value=f"{n}") for n in range(CALLERS)))
    assert len({record["id"] for record in shown}) == 1
    assert len(await of.of(http, owner)) == 1
    happened = [event.topic.split(".")[1] for event in await logged(inner) if event.stream.startswith(of.kind)]
    assert happened == ["registered"] + ["amended"] * (CALLERS - 1)


async def test_one_pair_under_several_ids_is_stored_under_one(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    answers = await asyncio.gather(
        *(http.post(f"{of.path}/bulk/{owner}", json=[{"id": new_id(), "category": "a", "key": "b"}]) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert len(await of.of(http, owner)) == 1


async def test_bulk_requests_with_the_same_pairs_make_each_pair_once(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    keys = [f"{n}" for n in range(8)]
    answers = await asyncio.gather(
        *(
            http.post(
                f"{of.path}/bulk/{owner}",
                json=[{"category": "a", "key": key, "value": f"{n}"} for key in (keys if n % 2 else reversed(keys))],
            )
            for n in range(6)
        )
    )
    assert {answer.status_code for answer in answers} == {200}
    shown = await of.of(http, owner)
    assert [record["key"] for record in shown] == keys
    assert len({record["value"] for record in shown}) == 1  # of one bulk: all or nothing


async def test_an_owner_is_deleted_while_properties_are_added(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    for _ in range(4):
        owner = await of.make(http, new_id())
        path = of.path.removesuffix("/customproperty")
        body = {of.owner_id: owner, "category": "a"}
        deleted, *added = await asyncio.gather(
            http.delete(f"{path}/{owner}"),
            *(http.post(f"{of.path}/", json={**body, "key": f"{n}"}) for n in range(4)),
            http.post(f"{of.path}/bulk/{owner}", json=[{"category": "a", "key": "4"}, {"category": "a", "key": "5"}]),
        )
        assert deleted.status_code == 200
        assert {answer.status_code for answer in added} <= {200, 404}
        assert await of.find(http, **{of.owner_id: owner}) == []
    assert await inner.database.row("SELECT count(*) FROM links") == (0,)


async def test_deletes_of_the_same_properties_count_each_once(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    for n in range(5):
        await of.put(http, owner, key=f"{n}")
    answers = await asyncio.gather(*(http.delete(f"{of.path}/", params={of.owner_id: owner}) for _ in range(4)))
    assert sorted(answer.json()["deletedCount"] for answer in answers) == [0, 0, 0, 5]


async def test_a_rename_and_an_upsert_by_the_old_pair_do_not_undo_each_other(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    key = (await of.put(http, owner, "a", "old", value="1"))["id"]
    renamed, upserted = await asyncio.gather(
        http.post(f"{of.path}/", json={"id": key, "key": "new"}),
        http.post(f"{of.path}/", json={of.owner_id: owner, "category": "a", "key": "old", "value": "2"}),
    )
    assert (renamed.status_code, upserted.status_code) == (200, 200)
    shown = {record["key"]: record for record in await of.of(http, owner)}
    assert shown["new"]["id"] == key
    assert shown.keys() == ({"new"} if upserted.json()["id"] == key else {"new", "old"})


async def test_a_move_takes_the_value_that_was_written_last(http: httpx.AsyncClient, of: Owner) -> None:
    source, target = await of.make(http), await of.make(http, "News")
    await of.put(http, source, "a", "b", value="1")
    ids = {of.source_id: source, of.target_id: target, "removeSource": "true"}
    moved, written = await asyncio.gather(
        http.get(f"{of.path}/clone/", params=ids),
        http.post(f"{of.path}/", json={of.owner_id: source, "category": "a", "key": "b", "value": "2"}),
    )
    assert (moved.status_code, written.status_code) == (200, 200)
    values = [record["value"] for owner in (source, target) for record in await of.of(http, owner)]
    assert "2" in values
