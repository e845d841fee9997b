"""Queries of the event log: entries, history and past states."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger
from domain.kernel.cause import Cause
from domain.record.kinds.room import Room
from projections.audit.queries import AuditedEvent, AuditQueries, EntryFilter
from tests.support.feeding import do, room

KEY = UUID(int=1)
HALL = UUID(int=11)
CAUSED = UUID(int=77)


@pytest.fixture
async def audit(inner: Core) -> AuditQueries:
    """A room and an Event in it, changed by two clients; the room gets another name at position 4."""
    await room(inner, 11, "Hall")
    studio = Cause.by("studio", correlation_id="t-1", causation_id=CAUSED)
    await do(inner, AddOrUpdateEvent(KEY, {"title": "Final", "room_id": HALL}), cause=studio)
    await do(
        inner,
        MediaEvent.change_state.on(KEY, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR),
        cause=Cause.by("desk", correlation_id="t-2"),
    )
    await do(inner, Room.amend.on(str(HALL), {"name": "Great Hall"}), cause=Cause.by("desk", correlation_id="t-3"))
    await do(inner, AddOrUpdateEvent(KEY, {"title": "Semi", "ref_id": "r"}), cause=Cause.by("studio", correlation_id="t-1"))
    return AuditQueries(inner.database.lists, inner.streams, inner.catalogue)


async def positions(audit: AuditQueries, **parts: Any) -> list[int]:
    return [entry.position for entry in (await audit.entries(EntryFilter(**parts))).entries]


async def recorded(audit: AuditQueries) -> dict[int, AuditedEvent]:
    return {entry.position: entry for entry in (await audit.entries(EntryFilter())).entries}


class TestEntries:
    async def test_newest_first_unless_asked_otherwise(self, audit: AuditQueries) -> None:
        assert await positions(audit) == [6, 5, 4, 3, 2, 1]
        assert await positions(audit, ascending=True) == [1, 2, 3, 4, 5, 6]

    async def test_after_and_before_are_exclusive(self, audit: AuditQueries) -> None:
        assert await positions(audit, after=2) == [6, 5, 4, 3]
        assert await positions(audit, before=3) == [2, 1]
        assert await positions(audit, after=2, before=4) == [3]
        assert await positions(audit, after=6) == []

    async def test_a_page_says_where_the_next_one_begins(self, audit: AuditQueries) -> None:
        assert await positions(audit, limit=2) == [6, 5]
        assert (await audit.entries(EntryFilter(limit=2))).next == 5
        assert (await audit.entries(EntryFilter(limit=2, ascending=True))).next == 2
        assert (await audit.entries(EntryFilter(limit=6))).next is None
        assert (await audit.entries(EntryFilter(limit=4, id=str(KEY)))).next is None
        assert (await audit.entries(EntryFilter(limit=3, id=str(KEY)))).next == 3

    @pytest.mark.parametrize("ascending", [False, True])
    @pytest.mark.parametrize("limit", [1, 2, 3, 50])
    @pytest.mark.parametrize(("scanned", "most_scanned"), [(1, 1), (1, 2), (2, 3), (2, 6), (50, 50)])
    async def test_pages_that_look_at_a_few_events_each_find_every_match(
        self, inner: Core, audit: AuditQueries, scanned: int, most_scanned: int, limit: int, ascending: bool
    ) -> None:
        few = AuditQueries(inner.database.lists, inner.streams, inner.catalogue, scanned=scanned, most_scanned=most_scanned)
        cases: list[tuple[dict[str, Any], list[int]]]
        cases = [({"actor": "desk"}, [3, 4]), ({}, [1, 2, 3, 4, 5, 6]), ({"type": "event.described"}, [5])]
        for parts, expected in cases:
            numbers: list[int] = []
            place: dict[str, Any] = {}
            while True:
                page = await few.entries(EntryFilter(limit=limit, ascending=ascending, **parts, **place))
                assert len(page.entries) <= limit
                numbers += [entry.position for entry in page.entries]
                if page.next is None:
                    break
                place = {"after" if ascending else "before": page.next}
            assert numbers == sorted(expected, reverse=not ascending)

    async def test_a_page_ends_before_it_is_too_large(self, inner: Core, audit: AuditQueries) -> None:
        for number in range(6):
            await do(inner, AddOrUpdateEvent(KEY, {"description": str(number) * 900_000}))
        first = await audit.entries(EntryFilter(ascending=True, after=6))
        assert [entry.position for entry in first.entries] == [7, 8, 9, 10, 11]
        assert first.next == 11
        history = await audit.history("event", str(KEY))
        assert history.next is not None
        rest = await audit.history("event", str(KEY), after=history.next)
        assert [entry.version for entry in [*history.entries, *rest.entries]] == list(range(1, 11))
        assert rest.next is None

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ({"aggregate": "room"}, [4, 1]),
            ({"aggregate": "event"}, [6, 5, 3, 2]),
            ({"aggregate": "even"}, []),
            ({"id": str(KEY)}, [6, 5, 3, 2]),
            ({"id": str(HALL), "aggregate": "room"}, [4, 1]),
            ({"id": str(HALL), "aggregate": "event"}, []),
            ({"type": "event.described"}, [5]),
            ({"actor": "studio"}, [6, 5, 2]),
            ({"actor": "Studio"}, []),
            ({"transaction_id": "t-1"}, [6, 5, 2]),
            ({"transaction_id": "t-1", "type": "event.registered"}, [2]),
            ({"actor": "desk", "aggregate": "event", "after": 2, "before": 4}, [3]),
            ({"actor": "' OR 1=1 --"}, []),
        ],
    )
    async def test_everything_given_must_hold(self, audit: AuditQueries, parts: dict[str, Any], expected: list[int]) -> None:
        assert await positions(audit, **parts) == expected

    async def test_from_and_to_are_inclusive(self, audit: AuditQueries) -> None:
        third = (await recorded(audit))[3].recorded_at
        tick = timedelta(microseconds=1)
        assert await positions(audit, recorded_from=third) == [6, 5, 4, 3]
        assert await positions(audit, recorded_from=third + tick) == [6, 5, 4]
        assert await positions(audit, recorded_to=third) == [3, 2, 1]
        assert await positions(audit, recorded_to=third - tick) == [2, 1]

    async def test_an_entry_shows_event_actor_reason_and_cause(self, audit: AuditQueries) -> None:
        entries = await recorded(audit)
        second, first = entries[2], entries[1]
        assert (second.aggregate, second.id, second.version, second.type) == ("event", str(KEY), 1, "event.registered")
        assert (second.actor, second.transaction_id, second.causation_id) == ("studio", "t-1", str(CAUSED))
        assert second.data == {"timestamp": "2031-01-02T12:00:00Z", "title": "Final", "room_id": str(HALL)}
        assert (first.actor, first.causation_id) == ("system", None)
        assert second.hash != first.hash
        assert len(bytes.fromhex(second.hash)) == 32

    async def test_the_events_of_one_command_share_its_cause_and_have_ids_of_their_own(self, audit: AuditQueries) -> None:
        entries = await recorded(audit)
        assert (entries[5].transaction_id, entries[5].recorded_at) == (entries[6].transaction_id, entries[6].recorded_at)
        assert len({entry.event_id for entry in entries.values()}) == 6


class TestHistory:
    async def test_it_is_everything_that_happened_oldest_first(self, audit: AuditQueries) -> None:
        history = await audit.history("event", str(KEY))
        assert history.next is None
        assert [(entry.version, entry.type) for entry in history.entries] == [
            (1, "event.registered"),
            (2, "event.state_changed"),
            (3, "event.described"),
            (4, "event.references_changed"),
        ]

    async def test_an_unknown_record_has_no_history(self, audit: AuditQueries) -> None:
        assert (await audit.history("event", str(HALL))).entries == []
        assert (await audit.history("client", "nobody")).entries == []

    async def test_it_is_read_page_by_page(self, audit: AuditQueries) -> None:
        page = await audit.history("event", str(KEY), limit=3)
        assert ([entry.version for entry in page.entries], page.next) == ([1, 2, 3], 3)
        page = await audit.history("event", str(KEY), after=3, limit=3)
        assert ([entry.version for entry in page.entries], page.next) == ([4], None)


class TestMoments:
    async def test_every_version_can_be_looked_at(self, audit: AuditQueries) -> None:
        seen = []
        for version in (1, 2, 3, 4):
            moment = await audit.past_state("event", str(KEY), version=version)
            assert moment is not None
            assert isinstance(moment.root, MediaEvent)
            assert moment.root.version == version
            seen.append((moment.position, moment.root.details.title, moment.root.details.state, moment.root.details.ref_id))
        live = EventState.LIVE_PUBLISHED
        assert seen == [(2, "Final", 0, None), (3, "Final", live, None), (5, "Semi", live, None), (6, "Semi", live, "r")]

    async def test_without_a_version_or_time_it_is_now(self, audit: AuditQueries) -> None:
        moment = await audit.past_state("event", str(KEY))
        assert moment is not None
        assert (moment.position, moment.root.version) == (6, 4)

    @pytest.mark.parametrize("version", [0, -1, 5, 2**62])
    async def test_a_version_that_never_was_is_not_found(self, audit: AuditQueries, version: int) -> None:
        assert await audit.past_state("event", str(KEY), version=version) is None

    async def test_at_a_time_it_is_as_the_log_then_had_it(self, audit: AuditQueries) -> None:
        entries = await recorded(audit)
        tick = timedelta(microseconds=1)
        for position, version in ((2, 1), (3, 2), (4, 2), (6, 4)):
            moment = await audit.past_state("event", str(KEY), at=entries[position].recorded_at)
            assert moment is not None
            assert moment.root.version == version
        assert await audit.past_state("event", str(KEY), at=entries[2].recorded_at - tick) is None
        late = await audit.past_state("event", str(KEY), at=entries[6].recorded_at + timedelta(days=9))
        assert late is not None
        assert (late.root.version, late.recorded_at) == (4, entries[6].recorded_at)

    async def test_the_names_of_links_are_those_of_that_moment(self, inner: Core, audit: AuditQueries) -> None:
        stream = Room.stream(HALL)
        for position, name in ((1, "Hall"), (3, "Hall"), (4, "Great Hall"), (99, "Great Hall")):
            roots = await inner.streams.as_of([stream, stream, "room:unknown"], position)
            assert {key: root.details.name for key, root in roots.items() if isinstance(root, Room)} == {stream: name}
        assert await inner.streams.as_of([stream], 0) == {}
        assert await inner.streams.as_of([], 6) == {}

    async def test_a_deleted_event_has_its_history_and_its_past(self, inner: Core, audit: AuditQueries) -> None:
        await do(inner, MediaEvent.delete.on(KEY))
        now, before = await audit.past_state("event", str(KEY)), await audit.past_state("event", str(KEY), version=4)
        assert now is not None
        assert before is not None
        assert isinstance(now.root, MediaEvent)
        assert isinstance(before.root, MediaEvent)
        assert (now.root.deleted, before.root.deleted) == (True, False)
