"""Filters, order and pages of Event lists, on a small schedule. See docs/reference/api/events.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger
from domain.provision.values import ProvisionState
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.tag import Tag
from projections.event.filters import ORDER_COLUMNS, EventFilter
from projections.event.queries import EventQueries
from projections.kernel.database.page import Window
from projections.record.queries import LinkUsers
from tests.support.clock import HandClock
from tests.support.feeding import configured, do, event, record, room, tag

NINE = datetime(2031, 6, 1, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MILLISECOND = timedelta(milliseconds=1)
EVERYTHING = EventFilter(window=Window(size=1000))


async def numbers(inner: Core, **parts: Any) -> list[int]:
    """The numbers of the Events that match, in the order of the page."""
    page = await EventQueries(inner.database).page(replace(EVERYTHING, **parts))
    assert page.total == len(page.results)
    return [row.id.int for row in page.results]


async def other_kinds(inner: Core) -> None:
    """Two records of each kind that an Event links to, except rooms and tags."""
    for number, name in ((31, "Sport"), (32, "Culture")):
        await record(inner, EventType, number, name=name)
    for number, name in ((41, "Channel B"), (42, "Channel A")):
        await record(inner, Channel, number, **configured(name))
    for number, name in ((51, "Flow"), (52, "Ebb")):
        await record(inner, Flow, number, **configured(name))
    for number, name in ((61, "News"), (62, "Films")):
        await record(inner, Category, number, name=name, label=name.lower())


class TestTimes:
    async def test_from_and_to_are_inclusive_and_events_without_a_start_drop_out(self, inner: Core) -> None:
        for number, start in enumerate([NINE, NINE + HOUR, NINE + 2 * HOUR, None], start=1):
            await event(inner, number, scheduled_start=start)
        assert await numbers(inner, scheduled_from=NINE + HOUR) == [2, 3]
        assert await numbers(inner, scheduled_from=NINE + HOUR + MILLISECOND) == [3]
        assert await numbers(inner, scheduled_to=NINE + HOUR) == [1, 2]
        assert await numbers(inner, scheduled_to=NINE + HOUR - MILLISECOND) == [1]
        assert await numbers(inner, scheduled_from=NINE, scheduled_to=NINE) == [1]
        assert await numbers(inner, scheduled_from=NINE + HOUR, scheduled_to=NINE) == []
        assert await numbers(inner) == [1, 2, 3, 4]

    async def test_modified_from_and_to_are_inclusive(self, inner: Core, clock: HandClock) -> None:
        begin = clock.now
        for number in (1, 2, 3):
            await event(inner, number, title="x")
            clock.forward(hours=1)
        await do(inner, AddOrUpdateEvent(UUID(int=1), {"title": "y"}))
        assert await numbers(inner, modified_from=begin + HOUR) == [1, 2, 3]
        assert await numbers(inner, modified_from=begin + 2 * HOUR) == [1, 3]
        assert await numbers(inner, modified_to=begin + HOUR) == [2]
        assert await numbers(inner, modified_from=begin + 2 * HOUR, modified_to=begin + 3 * HOUR - MILLISECOND) == [3]

    async def test_no_scheduled_end_finds_events_without_an_end(self, inner: Core) -> None:
        await event(inner, 1, scheduled_end=NINE)
        await event(inner, 2)
        assert await numbers(inner, no_scheduled_end=True) == [2]
        assert await numbers(inner, no_scheduled_end=False) == [1, 2]


class TestStates:
    async def test_any_of_the_states(self, inner: Core) -> None:
        for number, state in enumerate([EventState.PRE_LIVE, EventState.LIVE_PUBLISHED, EventState.STOPPED], start=1):
            await event(inner, number, state=state)
        assert await numbers(inner, states=[EventState.PRE_LIVE]) == [1]
        assert await numbers(inner, states=(EventState.STOPPED, EventState.LIVE_PUBLISHED)) == [2, 3]
        assert await numbers(inner, states=[EventState.REMIX_ERROR]) == []
        assert await numbers(inner, states=()) == [1, 2, 3]

    async def test_an_event_without_provision_info_has_no_provision_state(self, inner: Core) -> None:
        await event(inner, 1)
        for state in ProvisionState:
            assert await numbers(inner, provision_states=[state]) == []


class TestLinks:
    async def test_a_room_by_its_whole_exact_name_and_by_its_id(self, inner: Core) -> None:
        hall, plaza = await room(inner, 11, "Main Hall"), await room(inner, 12, "Plaza")
        for number, link in enumerate([hall, plaza, None], start=1):
            await event(inner, number, room_id=link)
        assert await numbers(inner, room="Main Hall") == [1]
        assert await numbers(inner, room="main hall") == []
        assert await numbers(inner, room="Main") == []
        assert await numbers(inner, room="%") == []
        assert await numbers(inner, room_id=plaza) == [2]
        assert await numbers(inner, room_id=UUID(int=99)) == []

    async def test_two_rooms_with_one_name_both_match(self, inner: Core) -> None:
        for number in (1, 2):
            await event(inner, number, room_id=await room(inner, 10 + number, "Hall"))
        assert await numbers(inner, room="Hall") == [1, 2]

    async def test_a_renamed_room_is_found_by_its_new_name_at_once(self, inner: Core) -> None:
        await event(inner, 1, room_id=await room(inner, 11, "Hall"))
        await room(inner, 11, "Great Hall")
        assert await numbers(inner, room="Hall") == []
        assert await numbers(inner, room="Great Hall") == [1]

    async def test_any_of_several_tags_matches(self, inner: Core) -> None:
        football, ski = await tag(inner, 21, "football"), await tag(inner, 22, "ski")
        await event(inner, 1, tag_ids=(football,))
        await event(inner, 2, tag_ids=(ski, football))
        await event(inner, 3, tag_ids=(ski,))
        await event(inner, 4)
        assert await numbers(inner, tags=["football"]) == [1, 2]
        assert await numbers(inner, tags=("football", "ski")) == [1, 2, 3]
        assert await numbers(inner, tags=["ski", "no such"]) == [2, 3]
        assert await numbers(inner, tags=["no such"]) == []
        assert await numbers(inner, tags=["Football"]) == []
        assert await numbers(inner, tag_id=ski) == [2, 3]

    async def test_the_name_of_a_deleted_tag_finds_nothing(self, inner: Core) -> None:
        """A restored Event keeps the id of a tag that was deleted."""
        key = await event(inner, 1, tag_ids=(await tag(inner, 21, "football"),))
        await do(inner, MediaEvent.delete.on(key))
        await do(inner, Tag.delete.on(str(UUID(int=21))))
        await do(inner, MediaEvent.restore.on(key))
        await event(inner, 2, tag_ids=(await tag(inner, 22, "football"),))
        assert await numbers(inner, tags=["football"]) == [2]

    async def test_types_channels_categories_and_flows(self, inner: Core) -> None:
        await other_kinds(inner)
        await event(inner, 1, event_type_id=UUID(int=31), channel_id=UUID(int=41))
        await event(inner, 2, category_ids=(UUID(int=61), UUID(int=62)), flow_id=UUID(int=51))
        await event(inner, 3, category_ids=(UUID(int=62),), remixflow_id=UUID(int=51))
        assert await numbers(inner, event_type="Sport") == [1]
        assert await numbers(inner, event_type="sport") == []
        assert await numbers(inner, channel="Channel B") == [1]
        assert await numbers(inner, channel="Channel A") == []
        assert await numbers(inner, categories=["News"]) == [2]
        assert await numbers(inner, categories=["news"]) == [2]
        assert await numbers(inner, categories=["NEWS"]) == []
        assert await numbers(inner, categories=["News", "films"]) == [2, 3]
        assert await numbers(inner, categories=["News", "news"]) == [2]
        assert await numbers(inner, category_id=UUID(int=62)) == [2, 3]
        assert await numbers(inner, event_type_id=UUID(int=31)) == [1]
        assert await numbers(inner, contains_flow=True) == [2]
        assert await numbers(inner, contains_flow=False) == [1, 2, 3]


class TestSearch:
    @pytest.mark.parametrize("field", ["title", "ref_id", "external_id", "description"])
    async def test_it_searches_every_text_of_the_event(self, inner: Core, field: str) -> None:
        changes: dict[str, Any] = {field: "The GRAND Final"}
        await event(inner, 1, **changes)
        await event(inner, 2, thumbnail="the grand final")
        for search in ("grand", "GRAND", "the grand final", "d F"):
            assert await numbers(inner, search=search) == [1]

    async def test_it_finds_a_content_id(self, inner: Core) -> None:
        await event(inner, 0xABCDEF)
        await event(inner, 2)
        assert await numbers(inner, search="00ABCDEF") == [0xABCDEF]

    @pytest.mark.parametrize("sign", ["%", "_", "\\", "'", '"', "*", "[a]", "ä", "İ", "ẞ"])
    async def test_special_characters_are_plain_text(self, inner: Core, sign: str) -> None:
        await event(inner, 1, title=f"a{sign}b")
        await event(inner, 2, title="axb")
        assert await numbers(inner, search=f"a{sign}b") == [1]
        assert await numbers(inner, search=sign.lower()) == [1]

    async def test_it_does_not_match_across_two_texts(self, inner: Core) -> None:
        await event(inner, 1, title="one", ref_id="two")
        for search in ("onetwo", "one two", "one\ntwo", "one\ttwo"):
            assert await numbers(inner, search=search) == []

    async def test_an_empty_search_finds_everything(self, inner: Core) -> None:
        await event(inner, 1)
        assert await numbers(inner, search="") == [1]


class TestSelection:
    async def test_skipped_events_are_left_out(self, inner: Core) -> None:
        for number in (1, 2, 3):
            await event(inner, number)
        assert await numbers(inner, skip=[UUID(int=2), UUID(int=77)]) == [1, 3]
        assert await numbers(inner, skip=()) == [1, 2, 3]

    async def test_deleted_events_are_in_their_own_list_only(self, inner: Core) -> None:
        for number in (1, 2):
            await event(inner, number, title="x")
        await do(inner, MediaEvent.delete.on(UUID(int=1)))
        assert await numbers(inner) == [2]
        assert await numbers(inner, deleted=True) == [1]
        assert await numbers(inner, deleted=True, search="x") == [1]
        assert await numbers(inner, deleted=True, skip=[UUID(int=1)]) == []

    async def test_filters_combine_with_and(self, inner: Core) -> None:
        hall = await room(inner, 11, "Hall")
        await event(inner, 1, title="Final", room_id=hall, scheduled_start=NINE)
        await event(inner, 2, title="Final", room_id=hall)
        await event(inner, 3, title="Other", room_id=hall, scheduled_start=NINE)
        assert await numbers(inner, room="Hall", search="final", scheduled_from=NINE) == [1]
        assert await numbers(inner, room="Hall", search="final", states=[EventState.STOPPED]) == []


class TestOrder:
    @pytest.mark.parametrize("descending", [False, True])
    async def test_the_default_order_is_the_scheduled_start(self, inner: Core, descending: bool) -> None:
        for number, start in ((1, NINE + HOUR), (2, None), (3, NINE), (4, NINE + HOUR), (5, None)):
            await event(inner, number, scheduled_start=start)
        expected = [4, 1, 3, 5, 2] if descending else [3, 1, 4, 2, 5]
        assert await numbers(inner, descending=descending) == expected

    @pytest.mark.parametrize(
        ("column", "low", "high"),
        [
            ("Title", {"title": "a"}, {"title": "b"}),
            ("RefId", {"ref_id": "a"}, {"ref_id": "b"}),
            ("ExternalId", {"external_id": "a"}, {"external_id": "b"}),
            ("Room", {"room_id": UUID(int=11)}, {"room_id": UUID(int=12)}),
            ("EventType", {"event_type_id": UUID(int=32)}, {"event_type_id": UUID(int=31)}),
            ("Channel", {"channel_id": UUID(int=42)}, {"channel_id": UUID(int=41)}),
            ("Vuflow", {"flow_id": UUID(int=52)}, {"flow_id": UUID(int=51)}),
            ("DisplayLiveStart", {"scheduled_start": NINE}, {"published_start": NINE + HOUR, "scheduled_start": NINE - HOUR}),
            ("DisplayLiveEnd", {"scheduled_end": NINE}, {"published_end": NINE + HOUR, "scheduled_end": NINE - HOUR}),
        ],
    )
    async def test_each_column_orders_both_ways_with_nulls_last_and_ties_by_id(
        self, inner: Core, column: str, low: dict[str, Any], high: dict[str, Any]
    ) -> None:
        await room(inner, 11, "Hall")
        await room(inner, 12, "Plaza")
        await other_kinds(inner)
        for number, changes in ((1, high), (2, {}), (3, low), (4, high), (5, low), (6, {})):
            await event(inner, number, **changes)
        assert await numbers(inner, order_column=column) == [3, 5, 1, 4, 2, 6]
        assert await numbers(inner, order_column=column, descending=True) == [4, 1, 5, 3, 6, 2]

    async def test_the_column_state_orders_by_number(self, inner: Core) -> None:
        for number, state in ((1, EventState.VOD_PUBLIC), (2, EventState.LIVE_PUBLISHED), (3, EventState.PRE_LIVE)):
            await event(inner, number, state=state)
        await event(inner, 4)
        assert await numbers(inner, order_column="State") == [3, 4, 2, 1]
        assert await numbers(inner, order_column="State", descending=True) == [1, 2, 4, 3]

    async def test_display_times_fall_back_to_the_actual_times(self, inner: Core) -> None:
        await event(inner, 1, scheduled_start=NINE + timedelta(days=900))
        await event(inner, 2)
        await do(inner, MediaEvent.change_state.on(UUID(int=2), EventState.LIVE_UNPUBLISHED, trigger=Trigger.OPERATOR))
        assert await numbers(inner, order_column="DisplayLiveStart") == [2, 1]

    def test_the_order_columns_have_these_names(self) -> None:
        columns = "Title State DisplayLiveStart DisplayLiveEnd EventType Room Channel Vuflow RefId ExternalId"
        assert list(ORDER_COLUMNS) == columns.split()


class TestPages:
    async def test_every_page_has_the_total(self, inner: Core) -> None:
        for number in range(1, 8):
            await event(inner, number, title="x" if number < 7 else "y")
        queries = EventQueries(inner.database)
        filter_ = EventFilter(search="x", window=Window(size=4))
        first, second, third = [await queries.page(replace(filter_, window=Window(size=4, number=number))) for number in (1, 2, 3)]
        assert [row.id.int for row in first.results] == [1, 2, 3, 4]
        assert [row.id.int for row in second.results] == [5, 6]
        assert third.results == []
        assert [(page.total, page.size) for page in (first, second, third)] == [(6, 4)] * 3

    async def test_a_page_is_never_larger_than_the_largest(self, inner: Core) -> None:
        page = await EventQueries(inner.database).page(EventFilter(window=Window(size=5000, number=2)))
        assert (page.size, page.total, Window(size=5000, number=3).offset) == (1000, 0, 2000)


class TestSingleEvents:
    async def test_a_deleted_event_is_not_found(self, inner: Core) -> None:
        key = await event(inner, 1, ref_id="r", external_id="x")
        queries = EventQueries(inner.database)
        row = await queries.by_id(key)
        assert row is not None
        assert (row.id, row.version, row.details.ref_id) == (key, 1, "r")
        assert await queries.by_reference("r") == await queries.by_external_id("x") == row
        await do(inner, MediaEvent.delete.on(key))
        assert await queries.by_id(key) is await queries.by_reference("r") is await queries.by_external_id("x") is None
        assert await queries.by_id(UUID(int=2)) is None

    async def test_the_newest_of_several_is_found(self, inner: Core, clock: HandClock) -> None:
        for number in (3, 1):
            await event(inner, number, ref_id="r/%_\\", external_id="x")
            clock.forward(seconds=1)
        await do(inner, AddOrUpdateEvent(UUID(int=3), {"title": "changed later"}))
        queries = EventQueries(inner.database)
        by_reference, by_external_id = await queries.by_reference("r/%_\\"), await queries.by_external_id("x")
        assert by_reference is not None
        assert by_reference.id.int == 1
        assert by_external_id == by_reference
        assert await queries.by_reference("r/%") is None

    async def test_some_users_of_a_room_are_named(self, inner: Core) -> None:
        hall = await room(inner, 11, "Hall")
        for number in range(1, 8):
            await event(inner, number, room_id=hall, title=f"Match {number}" if number > 1 else None)
        await do(inner, MediaEvent.delete.on(UUID(int=2)))
        users = await LinkUsers(inner.database).users_of([f"room:{hall}"], limit=3)
        assert [(user.id, user.name) for user in users] == [
            (str(UUID(int=number)), name) for number, name in ((1, ""), (3, "Match 3"), (4, "Match 4"))
        ]
