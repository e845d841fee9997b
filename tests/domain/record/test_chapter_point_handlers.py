"""Use cases of chapter points over in-memory twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ports import Invocation, Outcome
from domain.record.chapter_point_handlers import MAX_LEVELS, ChapterPointHandlers
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import ChapterPointProperty
from domain.record.ports import RecordRow
from domain.record.property_upserts import PropertyChange
from domain.record.record import Record, RegisterRecord
from tests.domain.memory import Memory
from tests.domain.scenario import fact

EVENT, OTHER = UUID(int=1), UUID(int=2)
TOP, MIDDLE, BOTTOM = UUID(int=11), UUID(int=12), UUID(int=13)
ME = Invocation.by("me")
REGISTERED, AMENDED, DELETED, _ = ChapterPoint.EVENTS


def point(key: UUID, parent: UUID | None = None, *, event: UUID = EVENT) -> RegisterRecord:
    return RegisterRecord(key, ChapterPoint, {"event_id": event, "start_time": "00:00:01", "parent_id": parent})


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    events = [AddOrUpdateEvent(key, {"title": "Final"}, new=True) for key in (EVENT, OTHER)]
    await memory.given(*events, point(TOP), point(MIDDLE, TOP), point(BOTTOM, MIDDLE))
    return memory


@pytest.fixture
def handlers(memory: Memory) -> ChapterPointHandlers:
    return ChapterPointHandlers(memory.executor, memory.records, properties=memory.properties, events=memory.events)


async def put(handlers: ChapterPointHandlers, key: UUID | None, **values: Any) -> Outcome[Record]:
    return await handlers.add_or_change(key, values, invocation=ME)


async def test_a_point_is_written_with_its_properties(memory: Memory, handlers: ChapterPointHandlers) -> None:
    properties = [PropertyChange(None, {"category": "web", "key": "icon", "value": value}) for value in ("ball", "whistle")]
    values = {"event_id": EVENT, "start_time": "00:00:05"}
    outcome = await handlers.add_or_change(None, values, properties=properties, invocation=ME)
    owned, added = outcome.aggregates
    assert (added.KIND, owned.details.value, str(owned.details.owner_id)) == ("chapter_point", "whistle", added.key)
    assert memory.topics == ["chapter_point_property.registered", "chapter_point.registered"]


async def test_a_new_point_needs_an_event_and_a_start(memory: Memory, handlers: ChapterPointHandlers) -> None:
    for key in (None, UUID(int=20)):
        with pytest.raises(Malformed) as refused:
            await put(handlers, key, title="x")
        assert [error.field for error in refused.value.errors] == ["eventId", "startTime"]
    assert memory.happened == []


async def test_the_event_must_exist(memory: Memory, handlers: ChapterPointHandlers) -> None:
    with pytest.raises(NotFound):
        await put(handlers, None, event_id=UUID(int=9), start_time="00:00:01")
    await memory.given(MediaEvent.delete.on(EVENT))
    with pytest.raises(NotFound):
        await put(handlers, TOP, title="x")
    assert memory.happened == []


@pytest.mark.parametrize("parent", [TOP, BOTTOM, UUID(int=9)])
async def test_a_parent_is_another_point_of_the_event_and_not_below(
    memory: Memory, handlers: ChapterPointHandlers, parent: UUID
) -> None:
    with pytest.raises(Malformed, match="parentId"):
        await put(handlers, TOP, parent_id=parent)
    assert memory.happened == []


async def test_a_point_above_that_moves_after_the_look_up_is_looked_at_again(
    memory: Memory, handlers: ChapterPointHandlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, right = UUID(int=21), UUID(int=22)
    await memory.given(point(first), point(right))
    look_up, moves = memory.records.of_parent, [ChapterPoint.amend.on(right, {"parent_id": first})]

    async def then_moved(kind: Any, parent: object) -> Sequence[RecordRow[Any]]:
        rows = await look_up(kind, parent)
        for move in moves:
            await memory.executor.execute(move, invocation=ME)
        moves.clear()
        return rows

    monkeypatch.setattr(memory.records, "of_parent", then_moved)
    with pytest.raises(Malformed, match="parentId: is the chapter point itself or one of its descendants"):
        await put(handlers, first, parent_id=right)
    assert memory.happened == [fact(AMENDED, parent_id=first)]


async def test_points_lie_32_levels_deep_at_most(memory: Memory, handlers: ChapterPointHandlers) -> None:
    parent = BOTTOM
    for level in range(4, MAX_LEVELS + 1):
        await memory.given(point(UUID(int=100 + level), parent))
        parent = UUID(int=100 + level)
    with pytest.raises(Malformed, match="at most 32 levels deep"):
        await put(handlers, None, event_id=EVENT, start_time="00:00:01", parent_id=parent)
    await memory.given(point(UUID(int=50)))
    with pytest.raises(Malformed, match="at most 32 levels deep"):
        await put(handlers, TOP, parent_id=UUID(int=50))


async def test_a_deletion_takes_the_properties_and_moves_the_points_below_up(
    memory: Memory, handlers: ChapterPointHandlers
) -> None:
    owned = RegisterRecord(UUID(int=31), ChapterPointProperty, {"owner_id": MIDDLE, "category": "a", "key": "b"})
    await memory.given(owned)
    memory.meanwhile(point(UUID(int=14), MIDDLE))
    outcome = await handlers.delete(MIDDLE, invocation=ME)
    assert (outcome.aggregate.key, outcome.before) == (str(MIDDLE), memory.log.head - 4)
    assert memory.happened[1:] == [
        fact(ChapterPointProperty.EVENTS[2]),
        fact(AMENDED, parent_id=TOP),
        fact(AMENDED, parent_id=TOP),
        fact(DELETED),
    ]


async def test_a_point_that_does_not_exist_is_not_deleted(memory: Memory, handlers: ChapterPointHandlers) -> None:
    with pytest.raises(NotFound):
        await handlers.delete(UUID(int=9), invocation=ME)
