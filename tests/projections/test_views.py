"""The rows of the views: what they show, and that feeding them twice or late does no harm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic_core import from_json

from api.wiring.catalogue import RECORD_VIEW, migrations, views
from api.wiring.core import Core
from domain.client.aggregate import Client, NewKey
from domain.client.commands import RegisterClient
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventDetails, EventState
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.clock import system_clock
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.redaction.aggregate import Redaction
from projections.client.view import CLIENT_VIEW
from projections.event.shown import FIELDS
from projections.event.view import EVENT_VIEW, search_text
from projections.kernel.database.arrays import bigints, booleans, byte_strings, instants, texts, uuids
from projections.kernel.schema.view import View
from tests.support.clock import NOON, HandClock
from tests.support.feeding import configured, do, event, record, room, table, tag

LATER = NOON + timedelta(hours=1)


def named(view: View[Any], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip([column.name for column in view.columns], row, strict=True))


EMPTY: Final[tuple[Any, ...]] = (None, "", False, 0, [])


def shown_values(lines: bytes) -> dict[str, Any]:
    """Return the values that responses show, by their names. The last values are words, and no JSON."""
    values = dict(zip(FIELDS, lines.decode().split("\n"), strict=True))
    words = {name: values.pop(name).split() for name in ("links", "category_ids", "thumbnail_flow", "thumbnail_path")}
    return {name: from_json(value) for name, value in values.items()} | words


async def only_row(inner: Core, view: View[Any]) -> dict[str, Any]:
    [row] = await table(inner.database, view)
    return named(view, row)


async def test_the_row_of_an_event_has_a_column_for_every_filter_and_order(inner: Core, clock: HandClock) -> None:
    links = {name: UUID(int=number) for number, name in enumerate(["room_id", "event_type_id", "channel_id", "flow_id"], start=10)}
    changes: dict[str, Any] = {
        "title": "Grüße",
        "ref_id": "R/1",
        "external_id": "x",
        "description": "Long",
        "category_ids": (UUID(int=2), UUID(int=1)),
        "tag_ids": (UUID(int=3),),
        "scheduled_start": LATER,
        "scheduled_end": LATER + timedelta(hours=2),
        "auto_end": True,
        "auto_provision_infrastructure": True,
        "scheduled_provision_at": NOON,
        "scheduled_terminate_at": LATER,
        **links,
    }
    for kind, number in ((Room, 10), (EventType, 11), (Tag, 3)):
        await record(inner, kind, number, name=kind.KIND)
    await record(inner, Channel, 12, **configured("channel"))
    await record(inner, Flow, 13, **configured("flow"))
    for number in (1, 2):
        await record(inner, Category, number, name=f"{number}", label=f"{number}")
    key = await event(inner, 1, **changes)
    clock.now = LATER
    await do(inner, AddOrUpdateEvent(key, {}, state=EventState.LIVE_PUBLISHED))
    row = await only_row(inner, EVENT_VIEW)
    document, shown = row.pop("document"), row.pop("shown")
    assert {name: value for name, value in row.items() if value is not None} == {
        "id": key,
        "version": 2,
        "deleted": False,
        "state": 2,
        "title": "Grüße",
        "ref_id": "R/1",
        "external_id": "x",
        **links,
        "category_ids": [UUID(int=2), UUID(int=1)],
        "tag_ids": [UUID(int=3)],
        "scheduled_start": LATER,
        "scheduled_end": LATER + timedelta(hours=2),
        "display_start": LATER,
        "display_end": LATER + timedelta(hours=2),
        "date_created": NOON,
        "date_modified": LATER,
        "shown_version": 2,
        "provision_due_at": NOON,
        "auto_end_at": LATER + timedelta(hours=2),
        "auto_provision_at": NOON,
        "auto_provision_until": LATER,
        "search_text": f"grüße\x1fr/1\x1fx\x1f{key}\x1flong",
    }
    details = EventDetails.model_validate_json(document)
    assert {name: getattr(details, name) for name in changes} == changes
    assert (details.state, details.actual_live_start, details.published_start) == (EventState.LIVE_PUBLISHED, LATER, LATER)
    assert {name: value for name, value in shown_values(shown).items() if value not in EMPTY} == {
        "id": str(key),
        "title": "Grüße",
        "ref_id": "R/1",
        "external_id": "x",
        "description": "Long",
        **{name: str(value) for name, value in links.items()},
        "state": 2,
        "state_string": "LIVE_PUBLISHED",
        "mp4_state_string": "NONE",
        "auto_end": True,
        "auto_provision_infrastructure": True,
        **dict.fromkeys(("display_start", "scheduled_start", "actual_live_start", "published_start"), "2031-01-02T13:00:00.000Z"),
        **dict.fromkeys(("display_end", "scheduled_end"), "2031-01-02T15:00:00.000Z"),
        "scheduled_provision_at": "2031-01-02T12:00:00.000Z",
        "scheduled_terminate_at": "2031-01-02T13:00:00.000Z",
        "date_created": "2031-01-02T12:00:00.000Z",
        "date_modified": "2031-01-02T13:00:00.000Z",
        "category_id": str(UUID(int=2)),
        "links": [
            *(f"{kind}:{links[f'{kind}_id']}" for kind in ("room", "event_type", "channel", "flow")),
            *(f"category:{UUID(int=number)}" for number in (2, 1)),
        ],
        "category_ids": [str(UUID(int=2)), str(UUID(int=1))],
    }, "raise the version of the view, and change this test"
    assert EVENT_VIEW.version == 10


async def test_an_event_without_facts_has_a_row_too(inner: Core) -> None:
    key = await event(inner, 1)
    row = await only_row(inner, EVENT_VIEW)
    assert {name for name, value in row.items() if value is not None} == {
        "id",
        "version",
        "deleted",
        "state",
        "date_created",
        "date_modified",
        "shown_version",
        "search_text",
        "document",
        "shown",
    }
    assert row["search_text"] == str(key)


async def test_a_deleted_event_keeps_its_row(inner: Core) -> None:
    key = await event(inner, 1, title="x")
    await do(inner, MediaEvent.delete.on(key))
    row = await only_row(inner, EVENT_VIEW)
    assert (row["deleted"], row["title"], row["version"]) == (True, "x", 2)


def test_searched_texts_are_lower_case_and_separate() -> None:
    details = EventDetails(title="A", description="B", thumbnail="never")
    assert search_text("KEY", details) == "a\x1fkey\x1fb"


async def test_the_row_of_a_record_shows_its_name_and_the_rest_as_a_document(inner: Core, clock: HandClock) -> None:
    key = await room(inner, 1, "Hall", "h")
    clock.now = LATER
    await do(inner, Room.amend.on(str(key), {"reference_id": None}))
    assert await only_row(inner, RECORD_VIEW) == {
        "kind": "room",
        "id": str(key),
        "version": 2,
        "deleted": False,
        "name": "Hall",
        "label": None,
        "reference_id": None,
        "parent": None,
        "date_created": NOON,
        "date_modified": LATER,
        "document": '{"name":"Hall"}',
    }
    await do(inner, Room.delete.on(str(key)))
    row = await only_row(inner, RECORD_VIEW)
    assert (row["deleted"], row["name"], row["version"]) == (True, "Hall", 3)


async def test_the_row_of_a_client_holds_hashes_and_ends_of_keys(inner: Core) -> None:
    await do(inner, RegisterClient("studio", ("viewer", "keys"), NewKey("k1", "aa")))
    await do(inner, Client.issue_key.on("studio", NewKey("k2", "bb"), expire_others_after=60))
    row = await only_row(inner, CLIENT_VIEW)
    assert (row["name"], row["version"], row["deleted"], row["registered_at"]) == ("studio", 4, False, NOON)
    assert row["roles"] == '["viewer","keys"]'
    assert '"key_id":"k1","key_hash":"aa"' in row["keys"]
    assert '"expires_at":"2031-01-02T12:01:00Z"' in row["keys"]
    await do(inner, Client.delete.on("studio", other_admins=True))
    row = await only_row(inner, CLIENT_VIEW)
    assert (row["deleted"], row["keys"]) == (True, "[]")


async def feed(inner: Core, view: View[Any], *roots: AggregateRoot) -> None:
    async with inner.database.connection() as connection:
        await connection.execute(
            view.upsert(view.name, ""), view.pack([row for root in roots for row in view.rows(root)]), binary=True
        )


async def test_a_row_fed_twice_or_late_changes_nothing(inner: Core) -> None:
    key = await tag(inner, 1, "football")
    await event(inner, 1, title="Old")
    [old] = (await inner.streams.load.many([f"event:{key}"])).values()
    await do(inner, AddOrUpdateEvent(key, {"title": "New", "tag_ids": (key,)}))
    [new] = (await inner.streams.load.many([f"event:{key}"])).values()
    expected = await table(inner.database, EVENT_VIEW)
    for root in (old, new, old, new):
        await feed(inner, EVENT_VIEW, root)
        assert await table(inner.database, EVENT_VIEW) == expected


async def test_rows_of_several_aggregates_go_in_one_statement(inner: Core) -> None:
    for number in (1, 2, 3):
        await tag(inner, number, f"tag {number}")
        await event(inner, number, tag_ids=(UUID(int=number),) if number > 1 else ())
    expected = await table(inner.database, EVENT_VIEW)
    roots = (await inner.streams.load.many([f"event:{UUID(int=number)}" for number in (3, 1, 2)])).values()
    async with inner.database.connection() as connection:
        await connection.execute("DELETE FROM event_view")
    await feed(inner, EVENT_VIEW, *roots)
    assert await table(inner.database, EVENT_VIEW) == expected


def test_every_kind_of_aggregate_has_a_view() -> None:
    from api.wiring.catalogue import AGGREGATES

    without = {Redaction.KIND}  # only the audit shows it
    assert {kind for view in views().all for kind in view.kinds} == {aggregate.KIND for aggregate in AGGREGATES} - without
    assert list(views().by_name) == [view.name for view in views().all]


def test_migrations_have_names_of_their_own_and_a_fixed_order() -> None:
    names = [step.name for step in migrations()]
    assert names == sorted(set(names))
    assert names[:3] == ["0001 log", "0002 views", "0003 key use"]


_ANY_MOMENT = datetime(1969, 7, 20, 20, 17, 40, 123_456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("packed", "values"),
    [
        (texts, ["a", None, "", 'ä \u2028 😀 {},"\\', "x" * 100_000]),
        (byte_strings, [b"", None, b"\x00\xff", b"x" * 100_000]),
        (uuids, [UUID(int=0), None, UUID(int=2**128 - 1)]),
        (bigints, [0, -1, None, 2**63 - 1, -(2**63)]),
        (booleans, [True, None, False]),
        (
            instants,
            [_ANY_MOMENT, None, NOON, datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
        ),
        (texts, []),
        (texts, [None]),
    ],
)
async def test_a_packed_array_arrives_as_it_was(inner: Core, packed: Any, values: list[Any]) -> None:
    async with inner.database.connection() as connection:
        cursor = await (await connection.execute("SELECT %s", (packed(values),), binary=True)).fetchone()
    assert cursor is not None
    assert cursor[0] == values


def test_the_clock_of_the_system_is_utc_and_cut_to_milliseconds() -> None:
    now = system_clock()
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0
