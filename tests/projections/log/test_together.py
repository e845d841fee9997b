"""Several commands, all or nothing: one append, in the order asked, decided anew when any of them lost a race."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import ClaimTaken, NotFound, PreconditionFailed
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.property_handlers import MAX_AT_ONCE
from domain.record.record import RegisterRecord
from tests.projections.log.helpers import interrupted, logged, rows, whole
from tests.support.feeding import do, room, tag

ME = Cause.by("tester")


def fixed(*commands: Command[Any]) -> Callable[[], Awaitable[Plan]]:
    async def ask() -> Plan:
        return Plan(commands)

    return ask


def named(number: int, name: str) -> Command[Any]:
    return Room.amend.on(UUID(int=number), {"name": name})


async def test_all_go_into_one_append_in_the_order_of_the_plan(inner: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    new = RegisterRecord(UUID(int=3), Tag, {"name": "ski"}, new=True)
    roots = (await inner.executor.execute(fixed(named(2, "b"), new, named(1, "a")), invocation=Invocation(ME))).aggregates
    assert [root.key for root in roots] == [str(UUID(int=number)) for number in (2, 3, 1)]
    streams = [f"room:{UUID(int=2)}", f"tag:{UUID(int=3)}", f"room:{UUID(int=1)}"]
    assert [stream for _, stream, _ in logged(database_url)][2:] == streams
    commands = rows(database_url, "SELECT metadata->>'command_id', recorded_at FROM events WHERE position > 2")
    assert len(set(commands)) == 1


async def test_a_refused_command_rolls_the_others_back(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    with pytest.raises(NotFound):
        await inner.executor.execute(fixed(named(1, "a"), named(9, "b")), invocation=Invocation(ME))
    assert whole(database_url) == 1
    again = (await inner.executor.execute(fixed(named(1, "a")), invocation=Invocation(ME))).aggregates
    assert [(root.version, root.details.name) for root in again] == [(2, "a")]


async def test_a_taken_claim_rolls_the_other_commands_back(inner: Core, other: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    await tag(other, 2, "ski")
    with pytest.raises(ClaimTaken):
        await inner.executor.execute(
            fixed(named(1, "a"), RegisterRecord(UUID(int=3), Tag, {"name": "ski"})), invocation=Invocation(ME)
        )
    assert whole(database_url) == 2


async def test_an_empty_plan_and_commands_without_changes_write_nothing(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    assert (await inner.executor.execute(fixed(), invocation=Invocation(ME))).aggregates == []
    [same] = (await inner.executor.execute(fixed(named(1, "Hall")), invocation=Invocation(ME))).aggregates
    assert (same.version, whole(database_url)) == (1, 1)


async def test_a_command_without_a_change_writes_no_event_in_a_batch(inner: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    roots = (await inner.executor.execute(fixed(named(1, "Hall"), named(2, "b")), invocation=Invocation(ME))).aggregates
    assert [root.version for root in roots] == [1, 2]
    assert whole(database_url) == 3


async def test_after_a_lost_race_of_one_all_are_decided_again(inner: Core, other: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    asked = count()

    async def theirs() -> None:
        if not next(asked):
            await do(other, named(2, "theirs"))

    ours = interrupted(inner, theirs)
    roots = (await ours.execute(fixed(named(1, "a"), named(2, "b")), invocation=Invocation(ME))).aggregates
    assert [(root.version, root.details.name) for root in roots] == [(2, "a"), (3, "b")]
    assert next(asked) == 2
    assert whole(database_url) == 5


async def test_plans_that_share_aggregates_in_any_order_do_not_wait_for_each_other(inner: Core, database_url: str) -> None:
    for number in range(4):
        await room(inner, number, "Hall")
    plans = [fixed(*(named((first + step) % 4, f"{first}") for step in range(3))) for first in range(4)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(inner.executor.execute(plan, invocation=Invocation.by("tester")) for plan in plans * 5))
    whole(database_url)


async def test_a_plan_with_two_commands_for_one_aggregate_is_an_error_and_does_not_hang(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    with pytest.raises(ValueError, match="two commands for one aggregate"):
        await inner.executor.execute(fixed(named(1, "a"), named(1, "b")), invocation=Invocation(ME))
    assert whole(database_url) == 1


async def test_a_companion_comes_before_its_command_and_only_the_command_insists_on_a_version(
    inner: Core, database_url: str
) -> None:
    ski = UUID(int=5)
    key = UUID(int=1)
    await do(inner, AddOrUpdateEvent(key, {}))

    async def plan() -> Plan:
        return Plan([RegisterRecord(ski, Tag, {"name": "ski"}, new=True), AddOrUpdateEvent(key, {"tag_ids": (ski,)})])

    with pytest.raises(PreconditionFailed):
        await inner.executor.execute(plan, invocation=Invocation(ME, frozenset({7})))
    await inner.executor.execute(plan, invocation=Invocation(ME, frozenset({1})))
    assert [stream for _, stream, _ in logged(database_url)] == [f"event:{key}", f"tag:{ski}", f"event:{key}"]


async def test_a_name_may_be_released_and_claimed_again_in_one_append(inner: Core, database_url: str) -> None:
    await tag(inner, 1, "ski")
    swap = fixed(Tag.delete.on(UUID(int=1)), RegisterRecord(UUID(int=2), Tag, {"name": "ski"}))
    await inner.executor.execute(swap, invocation=Invocation(ME))
    assert rows(database_url, "SELECT value, owner FROM unique_claims") == [("ski", f"tag:{UUID(int=2)}")]


async def test_a_category_with_as_many_properties_as_go_at_once_is_deleted_in_one_append(inner: Core, database_url: str) -> None:
    owner, keys = UUID(int=1), [UUID(int=100 + number) for number in range(MAX_AT_ONCE + 1)]
    await do(inner, RegisterRecord(owner, Category, {"name": "Many", "label": "Many"}))
    values = {"owner_id": owner, "category": "a", "value": None}
    for start in range(0, len(keys), 1000):
        new = [RegisterRecord(key, CategoryProperty, {**values, "key": str(key)}) for key in keys[start : start + 1000]]
        await inner.executor.execute(fixed(*new), invocation=Invocation(ME))
    before = whole(database_url)
    gone: list[Command[Any]] = [*(CategoryProperty.delete.on(key) for key in keys), Category.delete.on(owner)]
    await inner.executor.execute(fixed(*gone), invocation=Invocation(ME))
    assert whole(database_url) == before + MAX_AT_ONCE + 2
    assert rows(database_url, "SELECT count(*) FROM links") == [(0,)]
