"""Use cases of custom properties over in-memory twins."""

from __future__ import annotations

from uuid import UUID

import pytest

from domain.kernel.errors import Conflict, Malformed, NotFound, Refused
from domain.kernel.ports import Invocation, Plan
from domain.record.handlers import RecordHandlers
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.ports import PropertyFilter
from domain.record.property_handlers import MAX_AT_ONCE, PropertyHandlers
from domain.record.property_upserts import PropertyChange
from domain.record.record import RegisterRecord
from tests.domain.memory import Memory
from tests.domain.scenario import fact

OWNER, OTHER, KEY, UNKNOWN = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=9)
ME = Invocation.by("me")
REGISTERED, AMENDED, DELETED, _ = CategoryProperty.EVENTS


def stored(key: UUID, name: str, value: str | None = None, *, owner: UUID = OWNER) -> RegisterRecord:
    return RegisterRecord(key, CategoryProperty, {"owner_id": owner, "category": "a", "key": name, "value": value})


def change(name: str, value: str | None = None, *, id: UUID | None = None) -> PropertyChange:
    return PropertyChange(id, {"category": "a", "key": name, "value": value})


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    await memory.given(*(RegisterRecord(key, Category, {"name": f"{key}", "label": f"{key}"}) for key in (OWNER, OTHER)))
    return memory


@pytest.fixture
def handlers(memory: Memory) -> PropertyHandlers:
    return PropertyHandlers(memory.executor, memory.records, properties=memory.properties)


async def put(handlers: PropertyHandlers, change: PropertyChange, owner: UUID | None = OWNER) -> str:
    outcome = await handlers.add_or_change(CategoryProperty, change, owner=owner, owner_field="categoryId", invocation=ME)
    return outcome.aggregate.key


async def test_a_property_is_found_by_its_category_and_key(memory: Memory, handlers: PropertyHandlers) -> None:
    key = await put(handlers, change("k", "1"))
    assert await put(handlers, change("k", "2")) == key
    assert memory.happened == [
        fact(REGISTERED, owner_id=OWNER, category="a", key="k", value="1"),
        fact(AMENDED, value="2"),
    ]


async def test_a_property_that_another_request_adds_meanwhile_is_changed(memory: Memory, handlers: PropertyHandlers) -> None:
    memory.meanwhile(stored(KEY, "k", "1"))
    assert await put(handlers, change("k", "2")) == str(KEY)
    assert memory.topics == ["category_property.registered", "category_property.amended"]


async def test_unknown_ids_and_owners_are_not_found(memory: Memory, handlers: PropertyHandlers) -> None:
    with pytest.raises(NotFound):
        await put(handlers, change("k", id=UNKNOWN))
    with pytest.raises(NotFound):
        await put(handlers, change("k"), owner=UNKNOWN)
    with pytest.raises(Malformed, match="categoryId: is required"):
        await put(handlers, change("k"), owner=None)
    with pytest.raises(NotFound):
        await handlers.add_or_change_all(CategoryProperty, UNKNOWN, changes=[], invocation=ME)
    assert memory.happened == []


async def test_a_known_id_is_not_given_the_pair_of_another_property(memory: Memory, handlers: PropertyHandlers) -> None:
    await memory.given(stored(KEY, "one"), stored(UUID(int=4), "two"), stored(UUID(int=5), "one", owner=OTHER))
    with pytest.raises(Conflict, match="already has this category and key"):
        await put(handlers, change("two", id=KEY))
    with pytest.raises(Conflict, match="belongs to another category"):
        await put(handlers, change("x", id=KEY), owner=OTHER)
    assert memory.happened == []


async def test_of_changes_of_one_property_the_last_counts(memory: Memory, handlers: PropertyHandlers) -> None:
    await memory.given(stored(KEY, "stored", "0"))
    changes = [change("new", "1"), PropertyChange(KEY, {"value": "2"}), change("new", "3"), change("stored", "4")]
    outcome = await handlers.add_or_change_all(CategoryProperty, OWNER, changes=changes, invocation=ME)
    shown = [(outcome.aggregates[place].details.key, outcome.aggregates[place].details.value) for place in outcome.result["places"]]
    assert shown == [("new", "3"), ("stored", "4"), ("new", "3"), ("stored", "4")]
    assert memory.topics == ["category_property.registered", "category_property.amended"]


async def test_a_move_takes_the_latest_values_and_overwrites_the_target(memory: Memory, handlers: PropertyHandlers) -> None:
    await memory.given(stored(KEY, "k", "1"), stored(UUID(int=4), "k", "old", owner=OTHER))
    memory.meanwhile(CategoryProperty.amend.on(KEY, {"value": "2"}))
    outcome = await handlers.copy(CategoryProperty, OWNER, target=OTHER, move=True, invocation=ME)
    copies = outcome.aggregates[: outcome.result["copied"]]
    assert [(copy.key, copy.details.owner_id, copy.details.value) for copy in copies] == [(str(UUID(int=4)), OTHER, "2")]
    assert memory.happened == [fact(AMENDED, value="2"), fact(AMENDED, value="2"), fact(DELETED)]


async def test_a_copy_to_the_same_owner_changes_nothing(memory: Memory, handlers: PropertyHandlers) -> None:
    await memory.given(stored(KEY, "k"))
    outcome = await handlers.copy(CategoryProperty, OWNER, target=OWNER, move=True, invocation=ME)
    assert [copy.key for copy in outcome.aggregates] == [str(KEY)]
    assert memory.happened == []


async def test_properties_are_deleted_by_a_filter(memory: Memory, handlers: PropertyHandlers) -> None:
    await memory.given(stored(KEY, "k"), stored(UUID(int=4), "k", owner=OTHER), stored(UUID(int=5), "l"))
    with pytest.raises(Malformed, match="categoryId: or another filter is required"):
        await handlers.delete_matching(CategoryProperty, PropertyFilter(), owner_field="categoryId", invocation=ME)
    outcome = await handlers.delete_matching(CategoryProperty, PropertyFilter(key="k"), owner_field="categoryId", invocation=ME)
    assert len(outcome.aggregates) == 2
    assert memory.happened == [fact(DELETED)] * 2


async def test_too_many_properties_are_not_copied_but_deleted_in_parts_and_go_with_their_owner(
    memory: Memory, handlers: PropertyHandlers
) -> None:
    async def more_than_allowed() -> Plan:
        return Plan([stored(UUID(int=100 + number), f"{number}") for number in range(MAX_AT_ONCE + 1)])

    await memory.executor.execute(more_than_allowed, invocation=ME)
    await memory.given()
    with pytest.raises(Refused, match=r"there are 5001 properties; at most 5000 can be"):
        await handlers.copy(CategoryProperty, OWNER, target=OTHER, move=False, invocation=ME)
    assert memory.happened == []
    outcome = await handlers.delete_matching(CategoryProperty, PropertyFilter(key="7"), owner_field="categoryId", invocation=ME)
    assert (len(outcome.aggregates), memory.happened) == (1, [fact(DELETED)])
    records = RecordHandlers(memory.executor, memory.records)
    await records.delete_with_properties(Category, OWNER, properties=CategoryProperty, invocation=ME)
    assert memory.topics == ["category_property.deleted"] * (MAX_AT_ONCE + 1) + ["category.deleted"]


async def test_any_number_of_properties_is_deleted_by_a_filter(memory: Memory, handlers: PropertyHandlers) -> None:
    async def more_than_a_part() -> Plan:
        return Plan([stored(UUID(int=100 + number), f"{number}") for number in range(MAX_AT_ONCE + 1)])

    await memory.executor.execute(more_than_a_part, invocation=ME)
    await memory.given()
    outcome = await handlers.delete_matching(
        CategoryProperty, PropertyFilter(category="a"), owner_field="categoryId", invocation=ME
    )
    assert outcome.result == {"deleted": MAX_AT_ONCE + 1}
    assert memory.topics == ["category_property.deleted"] * (MAX_AT_ONCE + 1)
