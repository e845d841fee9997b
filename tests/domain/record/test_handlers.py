"""Use cases of simple records over in-memory twins."""

from __future__ import annotations

from uuid import UUID

import pytest

from domain.kernel.cause import Cause
from domain.kernel.errors import ClaimTaken, Malformed, NotFound, PreconditionFailed
from domain.kernel.ports import Invocation
from domain.record.handlers import RecordHandlers
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory

KEY, OTHER = UUID(int=1), UUID(int=2)
ME = Invocation.by("me")
NEWS = RegisterRecord(KEY, Category, {"name": "News", "label": "news"})


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def handlers(memory: Memory) -> RecordHandlers:
    return RecordHandlers(memory.executor, memory.records)


async def test_without_a_key_it_is_a_new_record(memory: Memory, handlers: RecordHandlers) -> None:
    first, second = [await handlers.register(Room, {"name": "Hall"}, invocation=ME) for _ in range(2)]
    assert first.aggregate.key != second.aggregate.key
    assert memory.topics == ["room.registered"] * 2


async def test_with_a_key_it_is_new_or_changed_or_made_again(memory: Memory, handlers: RecordHandlers) -> None:
    for name in ("Hall", "Great Hall"):
        await handlers.register(Room, {"name": name}, key=KEY, invocation=ME)
    await memory.executor.execute(Room.delete.on(KEY), invocation=ME)
    outcome = await handlers.register(Room, {"name": "Hall"}, key=KEY, invocation=ME)
    assert (outcome.aggregate.details.name, outcome.position) == ("Hall", 4)
    assert memory.topics == ["room.registered", "room.amended", "room.deleted", "room.restored"]


async def test_a_change_names_its_fields_and_a_version(memory: Memory, handlers: RecordHandlers) -> None:
    await memory.given(NEWS)
    accepting = Invocation(Cause.by("me"), frozenset({1}))
    changed = await handlers.amend(Category, KEY, values={"name": "Latest"}, invocation=accepting)
    assert (changed.aggregate.details.name, changed.aggregate.details.label) == ("Latest", "news")
    with pytest.raises(PreconditionFailed):
        await handlers.amend(Category, KEY, values={"name": "Old"}, invocation=accepting)
    with pytest.raises(NotFound):
        await handlers.amend(Category, OTHER, values={"name": "Old"}, invocation=ME)


async def test_a_value_that_is_taken_is_a_conflict_or_blamed_on_its_field(memory: Memory, handlers: RecordHandlers) -> None:
    await memory.given(NEWS)
    same = {"name": "Other", "label": "news"}
    with pytest.raises(ClaimTaken, match="the category label 'news' is taken"):
        await handlers.register(Category, same, invocation=ME)
    with pytest.raises(Malformed, match="label: is already used by another category"):
        await handlers.register(Category, same, unique_field="label", invocation=ME)
    made = await handlers.register(Category, {"name": "Other", "label": "other"}, invocation=ME)
    with pytest.raises(Malformed, match="label: is already used by another category"):
        await handlers.amend(Category, made.aggregate.key, values={"label": "news"}, unique_field="label", invocation=ME)
    await memory.executor.execute(Category.delete.on(KEY), invocation=ME)
    await handlers.amend(Category, made.aggregate.key, values={"label": "news"}, unique_field="label", invocation=ME)


async def test_a_record_goes_with_the_properties_that_it_owns(memory: Memory, handlers: RecordHandlers) -> None:
    owned = [RegisterRecord(UUID(int=at), CategoryProperty, {"owner_id": KEY, "category": "a", "key": str(at)}) for at in (3, 4)]
    await memory.given(NEWS, owned[0])
    memory.meanwhile(owned[1])
    outcome = await handlers.delete_with_properties(Category, KEY, properties=CategoryProperty, invocation=ME)
    assert [record.id for record in outcome.aggregates] == [
        f"category_property:{UUID(int=3)}",
        f"category_property:{UUID(int=4)}",
        f"category:{KEY}",
    ]
    assert (outcome.before, outcome.position) == (3, 6)
