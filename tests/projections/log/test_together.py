"""Several commands, all or nothing: one append, in the order asked, decided anew when any of them lost a race."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from api.core import Core
from domain.kernel.answers import RecordedAnswer
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, StaleVersion
from domain.media_event.commands import AddOrUpdateEvent
from domain.records.kinds.room import Room
from domain.records.kinds.tag import Tag
from domain.records.record import AmendRecord, RegisterRecord, WithdrawRecord
from projections.log.append import ClaimTaken
from projections.log.ledger import Plan
from tests.projections.feeding import do, room, tag
from tests.projections.log.helpers import logged, rows, whole

ME = Cause.by("tester")


def fixed(*commands: Command[Any]) -> Callable[[], Awaitable[Sequence[Command[Any]]]]:
    async def ask() -> Sequence[Command[Any]]:
        return commands

    return ask


def named(number: int, name: str) -> AmendRecord:
    return AmendRecord(UUID(int=number), Room, {"name": name})


async def test_all_go_into_one_append_in_the_order_asked(inner: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    new = RegisterRecord(UUID(int=3), Tag, {"name": "ski"}, new=True)
    roots = await inner.ledger.execute_all(fixed(named(2, "b"), new, named(1, "a")), cause=ME)
    assert [root.key for root in roots] == [str(UUID(int=number)) for number in (2, 3, 1)]
    streams = [f"room:{UUID(int=2)}", f"tag:{UUID(int=3)}", f"room:{UUID(int=1)}"]
    assert [stream for _, stream, _ in logged(database_url)][2:] == streams
    commands = rows(database_url, "SELECT metadata->>'command_id', recorded_at FROM events WHERE position > 2")
    assert len(set(commands)) == 1


async def test_a_refusal_of_one_leaves_nothing_of_the_others(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    with pytest.raises(NotFound):
        await inner.ledger.execute_all(fixed(named(1, "a"), named(9, "b")), cause=ME)
    assert whole(database_url) == 1
    again = await inner.ledger.execute_all(fixed(named(1, "a")), cause=ME)
    assert [(root.version, root.details.name) for root in again] == [(2, "a")]


async def test_a_taken_claim_of_one_leaves_nothing_of_the_others(inner: Core, other: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    await tag(other, 2, "ski")
    with pytest.raises(ClaimTaken):
        await inner.ledger.execute_all(fixed(named(1, "a"), RegisterRecord(UUID(int=3), Tag, {"name": "ski"})), cause=ME)
    assert whole(database_url) == 2


async def test_nothing_asked_and_nothing_to_do_write_nothing(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    assert await inner.ledger.execute_all(fixed(), cause=ME) == []
    [same] = await inner.ledger.execute_all(fixed(named(1, "Hall")), cause=ME)
    assert (same.version, whole(database_url)) == (1, 1)


async def test_one_that_changes_nothing_has_no_event_among_those_that_do(inner: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    roots = await inner.ledger.execute_all(fixed(named(1, "Hall"), named(2, "b")), cause=ME)
    assert [root.version for root in roots] == [1, 2]
    assert whole(database_url) == 3


async def test_a_lost_race_of_one_has_all_decided_anew(inner: Core, other: Core, database_url: str) -> None:
    for number in (1, 2):
        await room(inner, number, "Hall")
    asked = count()

    async def seal(roots: Sequence[Any], changes: bool) -> RecordedAnswer | None:
        if not next(asked):  # after the decision, before the append
            await do(other, named(2, "theirs"))
        return None

    roots = await inner.ledger.execute_all(fixed(named(1, "a"), named(2, "b")), cause=ME, seal=seal)
    assert [(root.version, root.details.name) for root in roots] == [(2, "a"), (3, "b")]
    assert next(asked) == 2
    assert whole(database_url) == 5


async def test_plans_that_share_aggregates_in_any_order_do_not_wait_for_each_other(inner: Core, database_url: str) -> None:
    for number in range(4):
        await room(inner, number, "Hall")
    plans = [fixed(*(named((first + step) % 4, f"{first}") for step in range(3))) for first in range(4)]
    async with asyncio.timeout(10):
        await asyncio.gather(*(inner.ledger.execute_all(plan, cause=Cause.by("tester")) for plan in plans * 5))
    whole(database_url)


async def test_a_plan_that_asks_twice_of_one_aggregate_is_a_fault_and_does_not_hang(inner: Core, database_url: str) -> None:
    await room(inner, 1, "Hall")
    with pytest.raises(ValueError, match="twice"):
        await inner.ledger.execute_all(fixed(named(1, "a"), named(1, "b")), cause=ME)
    assert whole(database_url) == 1


async def test_a_companion_comes_before_its_command_and_only_the_command_insists_on_a_version(
    inner: Core, database_url: str
) -> None:
    ski = UUID(int=5)
    key = UUID(int=1)
    await do(inner, AddOrUpdateEvent(key, {}))

    async def plan() -> Plan[Any]:
        return Plan(AddOrUpdateEvent(key, {"tag_ids": (ski,)}), [RegisterRecord(ski, Tag, {"name": "ski"}, new=True)])

    with pytest.raises(StaleVersion):
        await inner.ledger.execute(plan, cause=ME, if_match=frozenset({7}))
    await inner.ledger.execute(plan, cause=ME, if_match=frozenset({1}))
    assert [stream for _, stream, _ in logged(database_url)] == [f"event:{key}", f"tag:{ski}", f"event:{key}"]


async def test_what_goes_and_comes_again_under_one_name_may_do_so_in_one_append(inner: Core, database_url: str) -> None:
    await tag(inner, 1, "ski")
    swap = fixed(WithdrawRecord(UUID(int=1), Tag), RegisterRecord(UUID(int=2), Tag, {"name": "ski"}))
    await inner.ledger.execute_all(swap, cause=ME)
    assert rows(database_url, "SELECT value, owner FROM claims") == [("ski", f"tag:{UUID(int=2)}")]
