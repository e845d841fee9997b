"""Nothing comes to point at what is gone, and nothing goes while somebody points at it: whoever is first, in whatever process."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import projections.log
from api.core import Core
from domain.kernel.cause import Cause
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AddOrUpdateEvent, DeleteEvent, RestoreEvent
from domain.records.kinds.category import Category
from domain.records.kinds.custom_property import CategoryProperty
from domain.records.kinds.room import Room
from domain.records.record import RegisterRecord, WithdrawRecord
from projections.log.append import LinkBroken
from projections.log.ledger import Plan
from projections.log.links import Links, User
from tests.projections.feeding import do, event, record, room, tag
from tests.projections.log.helpers import rows, whole

ME = Cause.by("tester")
GONE = UUID(int=99)


def links(url: str) -> set[tuple[str, str]]:
    return {(owner, target) for owner, target in rows(url, "SELECT owner, target FROM links")}


def standing(url: str) -> set[str]:
    return {stream for (stream,) in rows(url, "SELECT stream FROM standing")}


async def test_a_link_is_made_changed_and_cut_with_the_event_that_holds_it(inner: Core, database_url: str) -> None:
    hall, plaza, ski = await room(inner, 11, "Hall"), await room(inner, 12, "Plaza"), await tag(inner, 21, "ski")
    key = await event(inner, 1, room_id=hall, tag_ids=(ski,))
    owner = f"event:{key}"
    assert links(database_url) == {(owner, f"room:{hall}"), (owner, f"tag:{ski}")}
    await do(inner, AddOrUpdateEvent(key, {"room_id": plaza, "tag_ids": ()}))
    assert links(database_url) == {(owner, f"room:{plaza}")}
    await do(inner, DeleteEvent(key))
    assert links(database_url) == set()
    await do(inner, RestoreEvent(key))
    assert links(database_url) == {(owner, f"room:{plaza}")}


async def test_what_stands_is_what_was_registered_and_not_withdrawn(inner: Core, database_url: str) -> None:
    hall, ski = await room(inner, 11, "Hall"), await tag(inner, 21, "ski")
    await event(inner, 1)
    assert standing(database_url) == {f"room:{hall}", f"tag:{ski}"}
    await do(inner, WithdrawRecord(hall, Room))
    assert standing(database_url) == {f"tag:{ski}"}
    await do(inner, RegisterRecord(hall, Room, {"name": "Hall"}))
    assert standing(database_url) == {f"room:{hall}", f"tag:{ski}"}


async def test_what_is_not_there_cannot_be_linked_to(inner: Core, database_url: str) -> None:
    with pytest.raises(LinkBroken) as broken:
        await event(inner, 1, room_id=GONE)
    assert list(broken.value.fallen) == []
    assert whole(database_url) == 0


async def test_what_is_linked_to_does_not_go(inner: Core, database_url: str) -> None:
    hall = await room(inner, 11, "Hall")
    key = await event(inner, 1, room_id=hall, title="Final")
    with pytest.raises(LinkBroken) as broken:
        await do(inner, WithdrawRecord(hall, Room))
    assert list(broken.value.fallen) == [f"room:{hall}"]
    assert whole(database_url) == 2
    assert await Links(inner.database).users_of(broken.value.fallen) == [User("event", str(key), "Final")]


async def test_users_of_every_kind_are_named(inner: Core) -> None:
    news = await record(inner, Category, 31, name="News", label="news")
    await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="b")
    await event(inner, 1, category_ids=(news,), title="Final")
    users = await Links(inner.database).users_of([f"category:{news}"])
    assert users == [User("category_property", str(UUID(int=41)), ""), User("event", str(UUID(int=1)), "Final")]
    fallen = [f"category:{news}", f"category_property:{UUID(int=41)}"]
    assert await Links(inner.database).users_of(fallen) == users[1:]
    assert await Links(inner.database).users_of(fallen, limit=1) == users[1:]


async def test_what_goes_together_may_point_at_each_other(inner: Core, database_url: str) -> None:
    news = await record(inner, Category, 31, name="News", label="news")
    inside = await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="b")

    async def both() -> list[WithdrawRecord]:
        return [WithdrawRecord(news, Category), WithdrawRecord(inside, CategoryProperty)]

    with pytest.raises(LinkBroken):
        await do(inner, WithdrawRecord(news, Category))
    await inner.ledger.execute_all(both, cause=ME)
    assert (links(database_url), standing(database_url)) == (set(), set())


async def test_an_event_comes_back_although_its_room_is_gone(inner: Core, database_url: str) -> None:
    hall, ski = await room(inner, 11, "Hall"), await tag(inner, 21, "ski")
    key = await event(inner, 1, room_id=hall, tag_ids=(ski,))
    await do(inner, DeleteEvent(key))
    await do(inner, WithdrawRecord(hall, Room))
    back = await do(inner, RestoreEvent(key))
    assert back.details.room_id == hall
    assert links(database_url) == {(f"event:{key}", f"tag:{ski}")}
    await do(inner, AddOrUpdateEvent(key, {"title": "back"}))
    await do(inner, AddOrUpdateEvent(key, {"room_id": None}))
    assert links(database_url) == {(f"event:{key}", f"tag:{ski}")}


async def test_an_event_comes_back_whatever_goes_in_that_moment(inner: Core, other: Core, database_url: str) -> None:
    """Its room may go between the look at what stands and the check of the key: then it is tried again."""
    for number in range(30):
        hall = await room(inner, 1000 + number, "Hall")
        key = await event(inner, number, room_id=hall)
        await do(inner, DeleteEvent(key))
        back, gone = await asyncio.gather(
            do(inner, RestoreEvent(key)), do(other, WithdrawRecord(hall, Room)), return_exceptions=True
        )
        assert not isinstance(back, BaseException)
        linked = (f"event:{key}", f"room:{hall}") in links(database_url)
        assert linked == isinstance(gone, LinkBroken)


@pytest.mark.parametrize("second_process", [False, True])
async def test_of_a_link_and_a_withdrawal_at_once_one_wins(
    inner: Core, other: Core, database_url: str, second_process: bool
) -> None:
    """In one process both may be in one statement; in two they meet at the head row."""
    outcomes, far = set(), other if second_process else inner
    for number in range(40):
        hall, key = await room(inner, 1000 + number, "Hall"), UUID(int=number)
        linking, leaving = do(inner, AddOrUpdateEvent(key, {"room_id": hall})), do(far, WithdrawRecord(hall, Room))
        turns = (linking, leaving) if number % 2 else (leaving, linking)
        answers = await asyncio.gather(*turns, return_exceptions=True)
        lost = [answer for answer in answers if isinstance(answer, BaseException)]
        assert [type(answer) for answer in lost] == [LinkBroken]
        outcomes.add(answers.index(lost[0]))
        linked = (f"event:{key}", f"room:{hall}") in links(database_url)
        assert linked == (f"room:{hall}" in standing(database_url))
    assert outcomes
    whole(database_url)


async def test_a_plan_is_asked_again_when_what_it_links_to_has_gone(inner: Core, other: Core) -> None:
    hall, plaza, asked = await room(inner, 11, "Hall"), await room(inner, 12, "Plaza"), count()

    async def plan() -> Plan[MediaEvent]:
        if next(asked):
            return Plan(AddOrUpdateEvent(UUID(int=1), {"room_id": plaza}))
        await do(other, WithdrawRecord(hall, Room))
        return Plan(AddOrUpdateEvent(UUID(int=1), {"room_id": hall}))

    made = await inner.ledger.execute(plan, cause=ME)
    assert made.details.room_id == plaza


async def test_a_neighbour_in_the_batch_is_not_harmed(inner: Core, database_url: str) -> None:
    hall = await room(inner, 11, "Hall")
    answers = await asyncio.gather(
        *(event(inner, number, room_id=hall if number % 2 else GONE) for number in range(20)), return_exceptions=True
    )
    assert [isinstance(answer, LinkBroken) for answer in answers] == [number % 2 == 0 for number in range(20)]
    assert len(links(database_url)) == 10


async def test_a_log_that_is_older_than_the_tables_gets_its_links(inner: Core, database_url: str) -> None:
    hall, ski = await room(inner, 11, "Hall"), await tag(inner, 21, "ski")
    await event(inner, 1, room_id=hall, tag_ids=(ski,))
    gone = await event(inner, 2, room_id=hall)
    await do(inner, DeleteEvent(gone))
    await room(inner, 12, "Gone")
    await do(inner, WithdrawRecord(UUID(int=12), Room))
    expected = links(database_url), standing(database_url)
    migration = (Path(projections.log.__file__).parent / "links.sql").read_text()
    with psycopg.connect(database_url, options="-c search_path=before_links,public") as connection:  # not kept: rolled back
        connection.execute("CREATE SCHEMA before_links")
        connection.execute(migration.encode())
        made = connection.execute("SELECT owner, target FROM before_links.links").fetchall()
        stood = connection.execute("SELECT stream FROM before_links.standing").fetchall()
        connection.rollback()
    assert ({(owner, target) for owner, target in made}, {stream for (stream,) in stood}) == expected
