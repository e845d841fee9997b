"""Nothing comes to point at what is gone, and nothing goes while somebody points at it: whoever is first, in whatever process."""

from __future__ import annotations

import asyncio
from itertools import count
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.cause import Cause
from domain.kernel.errors import InUse, LinkBroken
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from projections.record.queries import LinkUsers, User
from tests.projections.log.helpers import rows, whole
from tests.support.feeding import do, event, record, room, tag

ME = Cause.by("tester")
GONE = UUID(int=99)


def links(url: str) -> set[tuple[str, str]]:
    return {(owner, target) for owner, target in rows(url, "SELECT owner, target FROM links")}


def standing(url: str) -> set[str]:
    return {stream for (stream,) in rows(url, "SELECT stream FROM link_targets")}


async def test_a_link_is_made_changed_and_cut_with_the_event_that_holds_it(inner: Core, database_url: str) -> None:
    hall, plaza, ski = await room(inner, 11, "Hall"), await room(inner, 12, "Plaza"), await tag(inner, 21, "ski")
    key = await event(inner, 1, room_id=hall, tag_ids=(ski,))
    owner = f"event:{key}"
    assert links(database_url) == {(owner, f"room:{hall}"), (owner, f"tag:{ski}")}
    await do(inner, AddOrUpdateEvent(key, {"room_id": plaza, "tag_ids": ()}))
    assert links(database_url) == {(owner, f"room:{plaza}")}
    await do(inner, MediaEvent.delete.on(key))
    assert links(database_url) == set()
    await do(inner, MediaEvent.restore.on(key))
    assert links(database_url) == {(owner, f"room:{plaza}")}


async def test_link_targets_are_registered_and_not_deleted(inner: Core, database_url: str) -> None:
    hall, ski = await room(inner, 11, "Hall"), await tag(inner, 21, "ski")
    await event(inner, 1)
    assert standing(database_url) == {f"room:{hall}", f"tag:{ski}"}
    await do(inner, Room.delete.on(hall))
    assert standing(database_url) == {f"tag:{ski}"}
    await do(inner, RegisterRecord(hall, Room, {"name": "Hall"}))
    assert standing(database_url) == {f"room:{hall}", f"tag:{ski}"}


async def test_a_missing_target_cannot_be_linked_to(inner: Core, database_url: str) -> None:
    with pytest.raises(LinkBroken) as broken:
        await event(inner, 1, room_id=GONE)
    assert list(broken.value.no_longer_linkable) == []
    assert whole(database_url) == 0


async def test_a_target_with_links_cannot_be_deleted(inner: Core, database_url: str) -> None:
    hall = await room(inner, 11, "Hall")
    key = await event(inner, 1, room_id=hall, title="Final")
    with pytest.raises(InUse) as refused:
        await do(inner, Room.delete.on(hall))
    assert list(refused.value.users) == [f"event {key} 'Final'"]
    assert refused.value.rule == f"cannot delete: it is used by event {key} 'Final'"
    assert whole(database_url) == 2
    assert await LinkUsers(inner.database).users_of([f"room:{hall}"]) == [User("event", str(key), "Final")]


async def test_users_of_every_kind_are_named(inner: Core) -> None:
    news = await record(inner, Category, 31, name="News", label="news")
    await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="b")
    await event(inner, 1, category_ids=(news,), title="Final")
    users = await LinkUsers(inner.database).users_of([f"category:{news}"])
    assert users == [User("category_property", str(UUID(int=41)), ""), User("event", str(UUID(int=1)), "Final")]
    fallen = [f"category:{news}", f"category_property:{UUID(int=41)}"]
    assert await LinkUsers(inner.database).users_of(fallen) == users[1:]
    assert await LinkUsers(inner.database).users_of(fallen, limit=1) == users[1:]


async def test_aggregates_deleted_together_may_link_to_each_other(inner: Core, database_url: str) -> None:
    news = await record(inner, Category, 31, name="News", label="news")
    inside = await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="b")

    async def both() -> Plan:
        return Plan([Category.delete.on(news), CategoryProperty.delete.on(inside)])

    with pytest.raises(InUse):
        await do(inner, Category.delete.on(news))
    await inner.executor.execute(both, invocation=Invocation(ME))
    assert (links(database_url), standing(database_url)) == (set(), set())


async def test_an_event_is_restored_although_its_room_is_deleted(inner: Core, database_url: str) -> None:
    hall, ski = await room(inner, 11, "Hall"), await tag(inner, 21, "ski")
    key = await event(inner, 1, room_id=hall, tag_ids=(ski,))
    await do(inner, MediaEvent.delete.on(key))
    await do(inner, Room.delete.on(hall))
    back = await do(inner, MediaEvent.restore.on(key))
    assert back.details.room_id == hall
    assert links(database_url) == {(f"event:{key}", f"tag:{ski}")}
    await do(inner, AddOrUpdateEvent(key, {"title": "back"}))
    await do(inner, AddOrUpdateEvent(key, {"room_id": None}))
    assert links(database_url) == {(f"event:{key}", f"tag:{ski}")}


async def test_an_event_is_restored_whatever_is_deleted_at_that_moment(inner: Core, other: Core, database_url: str) -> None:
    """The room of the Event may be deleted between the look at the targets and the check of the key: the restore is
    then retried."""
    for number in range(30):
        hall = await room(inner, 1000 + number, "Hall")
        key = await event(inner, number, room_id=hall)
        await do(inner, MediaEvent.delete.on(key))
        back, gone = await asyncio.gather(
            do(inner, MediaEvent.restore.on(key)), do(other, Room.delete.on(hall)), return_exceptions=True
        )
        assert not isinstance(back, BaseException)
        linked = (f"event:{key}", f"room:{hall}") in links(database_url)
        assert linked == isinstance(gone, InUse)


@pytest.mark.parametrize("second_process", [False, True])
async def test_of_a_link_and_a_deletion_at_once_one_wins(inner: Core, other: Core, database_url: str, second_process: bool) -> None:
    """Both may be in one statement within a process; commands of two processes meet at the head row."""
    outcomes, far = set(), other if second_process else inner
    for number in range(40):
        hall, key = await room(inner, 1000 + number, "Hall"), UUID(int=number)
        linking, leaving = do(inner, AddOrUpdateEvent(key, {"room_id": hall})), do(far, Room.delete.on(hall))
        turns = (linking, leaving) if number % 2 else (leaving, linking)
        answers = await asyncio.gather(*turns, return_exceptions=True)
        lost = [answer for answer in answers if isinstance(answer, BaseException)]
        [at] = [answers.index(answer) for answer in lost]
        assert type(lost[0]) is (InUse if turns[at] is leaving else LinkBroken)
        outcomes.add(at)
        linked = (f"event:{key}", f"room:{hall}") in links(database_url)
        assert linked == (f"room:{hall}" in standing(database_url))
    assert outcomes
    whole(database_url)


async def test_a_plan_is_made_again_when_a_link_target_is_deleted(inner: Core, other: Core) -> None:
    hall, plaza, asked = await room(inner, 11, "Hall"), await room(inner, 12, "Plaza"), count()

    async def plan() -> Plan:
        if next(asked):
            return Plan([AddOrUpdateEvent(UUID(int=1), {"room_id": plaza})])
        await do(other, Room.delete.on(hall))
        return Plan([AddOrUpdateEvent(UUID(int=1), {"room_id": hall})])

    made = (await inner.executor.execute(plan, invocation=Invocation(ME))).aggregate
    assert made.details.room_id == plaza


async def test_another_command_in_the_batch_is_not_affected(inner: Core, database_url: str) -> None:
    hall = await room(inner, 11, "Hall")
    answers = await asyncio.gather(
        *(event(inner, number, room_id=hall if number % 2 else GONE) for number in range(20)), return_exceptions=True
    )
    assert [isinstance(answer, LinkBroken) for answer in answers] == [number % 2 == 0 for number in range(20)]
    assert len(links(database_url)) == 10
