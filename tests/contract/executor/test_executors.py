"""The behaviour of every executor of commands: handlers are tested with the one in memory, the product runs the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import (
    ClaimTaken,
    ConcurrencyConflict,
    InUse,
    LinkBroken,
    Malformed,
    NotFound,
    PlanOutdated,
    PreconditionFailed,
)
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed
from domain.kernel.ports import Invocation, Outcome, Plan
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import RegisterRecord
from tests.contract.executor.conftest import Stage

EVENT, HALL, SKI, LUGE = (UUID(int=number) for number in range(1, 5))


def me(*versions: int, key: str | None = None) -> Invocation:
    of = None if key is None else IdempotencyKey("me", key, b"mark", 201, "https://media.example")
    return Invocation(Cause.by("me"), frozenset(versions) if versions else None, of)


def room(name: str = "Hall") -> RegisterRecord[Any]:
    return RegisterRecord(HALL, Room, {"name": name})


def named(name: str) -> Command[Any]:
    return Room.amend.on(HALL, {"name": name})


def tag(key: UUID, name: str) -> RegisterRecord[Any]:
    return RegisterRecord(key, Tag, {"name": name})


def fixed(*commands: Command[Any], **result: Any) -> Callable[[], Awaitable[Plan]]:
    async def plan() -> Plan:
        return Plan(commands, result)

    return plan


async def given(stage: Stage, *commands: Command[Any]) -> None:
    for command in commands:
        await stage.executor.execute(command, invocation=me())


class Rival:
    """Executes commands in another process between a decision and its append, one each time."""

    def __init__(self, stage: Stage, *commands: Command[Any]) -> None:
        self._stage = stage
        self._remaining = list(commands)
        self.tried = 0

    async def __call__(self) -> None:
        self.tried += 1
        if self._remaining:
            await self._stage.other.execute(self._remaining.pop(0), invocation=me())


async def test_the_outcome_has_the_aggregate_and_the_position(stage: Stage) -> None:
    outcome = await stage.executor.execute(room(), invocation=me())
    assert (outcome.aggregate.details.name, outcome.position, outcome.as_of, outcome.recorded) == ("Hall", 1, None, False)
    same = await stage.executor.execute(named("Hall"), invocation=me())
    assert (same.aggregate.version, same.position) == (1, None)


async def test_the_outcome_has_what_was_before(stage: Stage) -> None:
    await given(stage, room(), tag(SKI, "ski"))
    outcome = await stage.executor.execute(fixed(tag(LUGE, "luge"), Tag.delete.on(SKI), named("b")), invocation=me())
    assert (outcome.before, outcome.position) == (2, 5)
    new, gone, changed = outcome.previous
    assert (new, gone.deleted, changed.details.name) == (None, False, "Hall")
    same = await stage.executor.execute(named("b"), invocation=me())
    assert (same.before, same.position, same.previous[0].version) == (None, None, 2)


async def test_what_is_given_out_never_changes(stage: Stage) -> None:
    """Two writers at once on an aggregate that is changed in place by its events, and one whose details are replaced."""
    for add, change in (
        (AddOrUpdateEvent(EVENT, {"title": "0"}), lambda at: AddOrUpdateEvent(EVENT, {"title": str(at)})),
        (room("0"), lambda at: named(str(at))),
    ):
        outcomes: list[Outcome[Any]] = [await stage.executor.execute(add, invocation=me())]
        shown = [describe(outcomes[0])]

        async def write(at: int, make: Any = change, into: Any = (outcomes, shown)) -> None:
            outcome = await stage.executor.execute(make(at), invocation=me())
            into[0].append(outcome)
            into[1].append(describe(outcome))

        await asyncio.gather(*(write(at) for at in range(1, 20)))
        assert [describe(outcome) for outcome in outcomes] == shown
        assert sorted(version for version, _ in shown) == list(range(1, 21))


def describe(outcome: Outcome[Any]) -> tuple[int, str]:
    return outcome.aggregate.version, outcome.aggregate.details.model_dump_json()


async def test_a_lost_race_is_decided_again(stage: Stage) -> None:
    await given(stage, room())
    rival = Rival(stage, named("1"), named("2"), named("3"))
    won = await stage.interrupted(rival).execute(named("ours"), invocation=me())
    assert (won.aggregate.version, rival.tried) == (5, 4)


async def test_after_four_lost_races_it_is_a_conflict(stage: Stage) -> None:
    await given(stage, room())
    with pytest.raises(ConcurrencyConflict):
        await stage.interrupted(Rival(stage, *map(named, "1234"))).execute(named("ours"), invocation=me())


async def test_if_match_is_compared_with_the_last_command(stage: Stage) -> None:
    await given(stage, room(), named("b"))
    for accepted in (1, 3):
        with pytest.raises(PreconditionFailed) as refused:
            await stage.executor.execute(fixed(tag(SKI, "ski"), named("c")), invocation=me(accepted))
        assert refused.value.current == 2
    await stage.executor.execute(fixed(tag(SKI, "ski"), named("c")), invocation=me(1, 2))
    assert (await stage.topics())[-2:] == ["tag.registered", "room.amended"]


async def test_if_match_is_compared_again_after_a_lost_race(stage: Stage) -> None:
    await given(stage, room())
    ours = stage.interrupted(Rival(stage, named("theirs")))
    with pytest.raises(PreconditionFailed):
        await ours.execute(named("ours"), invocation=me(1))


async def test_bad_input_and_missing_keys_are_reported_before_if_match(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.executor.execute(named("x"), invocation=me(7))
    with pytest.raises(Malformed):
        await stage.executor.execute(AddOrUpdateEvent(EVENT, {"dvr_length": -1}), invocation=me(7))


async def test_a_plan_is_all_or_nothing(stage: Stage) -> None:
    await given(stage, tag(SKI, "ski"))
    with pytest.raises(NotFound):
        await stage.executor.execute(fixed(tag(LUGE, "luge"), named("x")), invocation=me())
    with pytest.raises(ClaimTaken) as taken:
        await stage.executor.execute(fixed(room(), tag(LUGE, "ski")), invocation=me())
    assert str(taken.value) == "the tag name 'ski' is taken"
    assert await stage.topics() == ["tag.registered"]
    assert await stage.claims() == {("tag.name", "ski", f"tag:{SKI}")}


async def test_a_plan_without_commands_is_an_empty_outcome(stage: Stage) -> None:
    outcome = await stage.executor.execute(fixed(n=0), invocation=me())
    assert (list(outcome.aggregates), outcome.position, outcome.result) == ([], None, {"n": 0})


async def test_a_plan_has_one_command_for_each_aggregate(stage: Stage) -> None:
    with pytest.raises(ValueError, match="two commands for one aggregate"):
        await stage.executor.execute(fixed(room(), named("x")), invocation=me())


async def test_a_value_that_is_freed_can_be_claimed_in_the_same_plan(stage: Stage) -> None:
    await given(stage, tag(SKI, "ski"))
    await stage.executor.execute(fixed(Tag.delete.on(SKI), tag(LUGE, "ski")), invocation=me())
    assert await stage.claims() == {("tag.name", "ski", f"tag:{LUGE}")}


async def test_a_plan_is_made_again_when_a_claim_is_lost_a_single_command_is_not(stage: Stage) -> None:
    plans: list[str] = []

    async def plan() -> Plan:
        plans.append("luge" if plans else "ski")
        return Plan([tag(LUGE, plans[-1])])

    await stage.interrupted(Rival(stage, tag(SKI, "ski"))).execute(plan, invocation=me())
    assert plans == ["ski", "luge"]
    rival = Rival(stage)
    with pytest.raises(ClaimTaken):
        await stage.interrupted(rival).execute(tag(HALL, "ski"), invocation=me())
    assert rival.tried == 1


async def test_a_plan_is_made_again_when_what_it_rests_on_has_changed(stage: Stage) -> None:
    await given(stage, room())
    plans: list[dict[str, str]] = []

    async def plan() -> Plan:
        plans.append({"name": "Great Hall"} if plans else {"name": "gone"})
        return Plan([Room.amend.on(HALL, {"reference_id": "r"}, still=plans[-1]).as_planned()])

    await given(stage, named("Great Hall"))
    outcome = await stage.executor.execute(plan, invocation=me())
    assert (len(plans), outcome.aggregate.details.reference_id) == (2, "r")
    with pytest.raises(PlanOutdated):
        await stage.executor.execute(Room.amend.on(HALL, {}, still={"name": "gone"}).as_planned(), invocation=me())


async def test_links_need_a_target_and_keep_it(stage: Stage) -> None:
    with pytest.raises(LinkBroken):
        await stage.executor.execute(AddOrUpdateEvent(EVENT, {"room_id": HALL}), invocation=me())
    await given(stage, room(), AddOrUpdateEvent(EVENT, {"room_id": HALL}))
    with pytest.raises(InUse, match=f"cannot delete: it is used by event {EVENT}"):
        await stage.executor.execute(Room.delete.on(HALL), invocation=me())
    assert await stage.links() == {(f"event:{EVENT}", f"room:{HALL}")}


async def test_a_restored_event_leaves_out_links_to_what_is_gone(stage: Stage) -> None:
    await given(stage, room(), tag(SKI, "ski"), AddOrUpdateEvent(EVENT, {"room_id": HALL, "tag_ids": (SKI,)}))
    await given(stage, MediaEvent.delete.on(EVENT), Room.delete.on(HALL), MediaEvent.restore.on(EVENT))
    assert await stage.links() == {(f"event:{EVENT}", f"tag:{SKI}")}


async def test_a_key_is_stored_with_the_events_and_gives_the_first_outcome_again(stage: Stage) -> None:
    first = await stage.executor.execute(fixed(tag(SKI, "ski"), room(), places=[1, 0]), invocation=me(key="k"))
    assert first.recorded
    await given(stage, named("Great Hall"), Tag.amend.on(SKI, {"name": "skiing"}))
    record, again = await stage.repeated("me", "k")
    assert (record.of, record.position) == (me(key="k").idempotency, 2)
    assert list(record.streams) == [f"tag:{SKI}", f"room:{HALL}"]
    assert [aggregate.details.name for aggregate in again.aggregates] == ["ski", "Hall"]
    assert (again.result, again.position, again.as_of, again.secrets) == ({"places": [1, 0]}, 2, 2, {})
    assert list(again.aggregates) == list(first.aggregates)


async def test_a_key_that_is_used_lets_nothing_be_written(stage: Stage) -> None:
    await stage.executor.execute(room(), invocation=me(key="k"))
    with pytest.raises(IdempotencyKeyUsed):
        await stage.executor.execute(tag(SKI, "ski"), invocation=me(key="k"))
    assert await stage.topics() == ["room.registered"]


async def test_a_write_without_events_leaves_its_key_to_the_caller(stage: Stage) -> None:
    await given(stage, room())
    assert not (await stage.executor.execute(named("Hall"), invocation=me(key="k"))).recorded
