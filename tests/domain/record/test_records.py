"""Records: registered, amended, deleted. Rooms have no unique field, tags have one."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

import pytest
from pydantic import BaseModel

from domain.kernel.aggregate import Claim
from domain.kernel.errors import Malformed, NotFound, PlanOutdated
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import Record, RegisterRecord
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

KEY = str(UUID(int=7))
ROOM_REGISTERED, ROOM_AMENDED, ROOM_DELETED, ROOM_RESTORED = Room.EVENTS
TAG_REGISTERED, TAG_AMENDED, TAG_DELETED, _ = Tag.EVENTS


def no_room() -> Scenario[Any]:
    return given(Room, KEY)


def a_room(*since: Fact) -> Scenario[Any]:
    return given(Room, KEY, fact(ROOM_REGISTERED, name="Hall"), *since)


def a_tag(*since: Fact) -> Tag:
    root = given(Tag, KEY, fact(TAG_REGISTERED, name="football"), *since).root
    assert root is not None
    return root


def test_a_record_is_registered_with_the_values_that_were_given() -> None:
    room = no_room().when(RegisterRecord(KEY, Room, {"name": "Hall"})).then(fact(ROOM_REGISTERED, name="Hall"))
    assert (room.id, room.version, room.created_on) == (f"room:{KEY}", 1, NOW)
    assert (room.details.name, room.details.reference_id) == ("Hall", None)


def test_registering_an_existing_record_amends_it() -> None:
    a_room().when(RegisterRecord(KEY, Room, {"name": "Hall", "reference_id": "h"})).then(fact(ROOM_AMENDED, reference_id="h"))
    a_room().when(RegisterRecord(KEY, Room, {"name": "Hall"})).then_nothing()


def test_registering_a_deleted_record_restores_it_with_the_new_values() -> None:
    given = a_room(fact(ROOM_AMENDED, reference_id="h"), fact(ROOM_DELETED))
    room = given.when(RegisterRecord(KEY, Room, {"name": "New hall"})).then(fact(ROOM_RESTORED, name="New hall"))
    assert not room.deleted
    assert (room.details.name, room.details.reference_id) == ("New hall", None)
    assert (room.created_on, room.modified_on) == (THEN, NOW)


def test_values_that_are_the_same_give_no_event() -> None:
    given = a_room(fact(ROOM_AMENDED, reference_id="h"))
    room = given.when(Room.amend.on(KEY, {"name": "Hall", "reference_id": "i"})).then(fact(ROOM_AMENDED, reference_id="i"))
    assert (room.details.name, room.details.reference_id) == ("Hall", "i")
    same = given.when(Room.amend.on(KEY, {"name": "Hall", "reference_id": "h"})).then_nothing()
    assert (same.version, same.modified_on) == (2, THEN)


def test_a_field_set_to_null_is_changed_and_an_absent_one_is_not() -> None:
    given = a_room(fact(ROOM_AMENDED, reference_id="h"))
    room = given.when(Room.amend.on(KEY, {"reference_id": None})).then(fact(ROOM_AMENDED, reference_id=None))
    assert (room.details.name, room.details.reference_id) == ("Hall", None)


def test_a_deleted_record_keeps_its_details() -> None:
    room = a_room().when(Room.delete.on(KEY)).then(fact(ROOM_DELETED))
    assert room.deleted
    assert room.details.name == "Hall"


@pytest.mark.parametrize("command", [Room.amend.on(KEY, {"name": "x"}), Room.amend.on(KEY, {}), Room.delete.on(KEY)])
def test_a_record_that_does_not_exist_can_only_be_registered(command: Any) -> None:
    refused = no_room().when(command).then_refused(NotFound)
    assert (refused.kind, refused.key) == ("room", KEY)
    a_room(fact(ROOM_DELETED)).when(command).then_refused(NotFound)


STILL = {"name": "Hall"}
RELYING = [
    Room.amend.on(KEY, {}, still=STILL).as_planned(),
    Room.amend.on(KEY, {"name": "x"}, still=STILL).as_planned(),
    Room.delete.on(KEY, still=STILL).as_planned(),
]
relying = pytest.mark.parametrize("command", RELYING)


@relying
def test_a_command_is_executed_while_its_look_up_is_still_true(command: Any) -> None:
    assert a_room().when(command).refusal is None
    assert a_room(fact(ROOM_AMENDED, reference_id="h")).when(command).refusal is None


@relying
def test_a_command_whose_look_up_is_no_longer_true_is_outdated(command: Any) -> None:
    for now in (a_room(fact(ROOM_AMENDED, name="New hall")), a_room(fact(ROOM_DELETED)), no_room()):
        now.when(command).then_refused(PlanOutdated)


def test_a_new_record_needs_all_required_fields() -> None:
    for absent in (no_room(), a_room(fact(ROOM_DELETED))):
        for values in ({}, {"reference_id": "h"}, {"name": None}):
            refused = absent.when(RegisterRecord(KEY, Room, values)).then_refused(Malformed)
            assert [(error.field, error.message) for error in refused.errors] == [("name", "is required")]


def test_only_a_command_with_a_new_key_creates() -> None:
    assert RegisterRecord(KEY, Room, {}, new=True).creates
    assert not RegisterRecord(KEY, Room, {}).creates
    assert not Room.amend.on(KEY, {}).creates


def test_a_unique_field_is_claimed_until_the_record_is_deleted() -> None:
    claim = Claim("tag.name", "football", f"tag:{KEY}")
    assert a_tag().claims() == {claim}
    assert a_tag(fact(TAG_AMENDED, name="handball")).claims() == {Claim("tag.name", "handball", f"tag:{KEY}")}
    assert a_tag(fact(TAG_DELETED)).claims() == frozenset()


def test_a_kind_without_a_unique_field_claims_nothing() -> None:
    root = a_room().root
    assert root is not None
    assert root.claims() == frozenset()


class BadgeDetails(BaseModel):
    number: int
    colour: str | None = None


class Badge(Record):
    """A kind with two unique fields, one of which may be empty."""

    KIND: ClassVar[str] = "badge_holder"
    DETAILS: ClassVar[type[BaseModel]] = BadgeDetails
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ("number", "colour", ("number", "colour"))


def test_an_empty_value_claims_nothing_and_numbers_are_claimed_as_text() -> None:
    badge = Badge.register(KEY, NOW, {"number": 7})
    number = Claim("badge_holder.number", "7", badge.id)
    assert badge.claims() == {number, Claim("badge_holder.number+colour", '["7", null]', badge.id)}
    badge.amend(NOW, {"colour": "red"})
    colour, pair = (
        Claim("badge_holder.colour", "red", badge.id),
        Claim("badge_holder.number+colour", '["7", "red"]', badge.id),
    )
    assert badge.claims() == {number, colour, pair}


def test_a_group_of_long_values_is_claimed_by_its_digest() -> None:
    long = [Badge.register(KEY, NOW, {"number": 7, "colour": "x" * size}) for size in (700, 701)]
    claimed = [next(claim.value for claim in badge.claims() if "+" in claim.scope) for badge in long]
    assert [len(value) for value in claimed] == [64, 64]
    assert claimed[0] != claimed[1]


def test_a_record_is_linkable_until_it_is_deleted() -> None:
    room, gone = a_room().root, a_room(fact(ROOM_DELETED)).root
    assert room is not None
    assert gone is not None
    assert (room.linkable(), gone.linkable()) == (True, False)


def test_a_record_has_links_until_it_is_deleted() -> None:
    values = {"owner_id": UUID(int=1), "category": "a", "key": "b"}
    record = CategoryProperty.register(KEY, NOW, values)
    assert record.links() == {f"category:{UUID(int=1)}"}
    record.delete(NOW)
    assert record.links() == frozenset()
    assert a_tag().links() == frozenset()


def test_the_events_of_a_kind_are_named_after_it() -> None:
    assert [event.__name__ for event in Badge.EVENTS] == [
        "BadgeHolderRegistered",
        "BadgeHolderAmended",
        "BadgeHolderDeleted",
        "BadgeHolderRestored",
    ]
    assert [event.TOPIC for event in Badge.EVENTS] == [
        "badge_holder.registered",
        "badge_holder.amended",
        "badge_holder.deleted",
        "badge_holder.restored",
    ]
