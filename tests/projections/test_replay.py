"""Stored events, folded by the eventsourcing library, give the rows of the views, and every change of a row is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from api.wiring.catalogue import catalogue, views
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from domain.kernel.mapper import EventMapper
from domain.record.kinds.category import Category
from projections.audit.replay import Replay, Replayed
from projections.kernel.schema.view import View
from tests.support.feeding import as_superuser, do, event, record, room, tag


@pytest.fixture
def replay(inner: Core, database_url: str) -> Iterator[Replay]:
    with Replay.open(database_url, mapper=EventMapper(catalogue()), views=views()) as replaying:
        yield replaying


async def traffic(inner: Core) -> UUID:
    for number in (7, 8):
        await record(inner, Category, number, name=f"{number}", label=f"{number}")
    key = await event(inner, 1, title="Grüße", state=EventState.LIVE_PUBLISHED, category_ids=(UUID(int=7), UUID(int=8)))
    await do(inner, AddOrUpdateEvent(key, {"title": "Final", "dvr_length": 30}))
    await do(inner, MediaEvent.delete.on(await event(inner, 2)))
    await room(inner, 1, "Hall", "r-1")
    await tag(inner, 1, "sport")
    return key


async def test_a_replay_of_the_events_gives_the_stored_state(inner: Core, replay: Replay) -> None:
    key = await traffic(inner)
    shown = await inner.database.row("SELECT version FROM event_view WHERE id = %s", (key,))
    assert replay.of_stream(f"event:{key}") == Replayed(f"event:{key}", shown[0] if shown else 0, ())
    replays = {kind: list(replay.of_kind(kind)) for kind in catalogue().aggregates}
    assert {kind: len(replayed) for kind, replayed in replays.items() if replayed} == {
        "event": 2,
        "category": 2,
        "room": 1,
        "tag": 1,
    }
    assert not [replay_ for replayed in replays.values() for replay_ in replayed if replay_.differences]
    assert replay.of_stream(f"event:{UUID(int=9)}") == Replayed(f"event:{UUID(int=9)}", 0, ())


async def test_every_change_of_a_row_is_noticed(inner: Core, replay: Replay, database_url: str) -> None:
    key = await traffic(inner)
    for change, difference in (
        ("title = 'Other'", "event_view.title differs"),
        ("scheduled_start = now()", "event_view.scheduled_start differs"),
        ("category_ids = NULL", "event_view.category_ids differs"),
        ("state = 4", "event_view.state differs"),
    ):
        column = change.partition(" ")[0]
        saved = f"(SELECT {column} FROM event_view_kept WHERE id = '{key}')"
        as_superuser(database_url, "CREATE TABLE IF NOT EXISTS event_view_kept AS TABLE event_view")
        as_superuser(database_url, f"UPDATE event_view SET {change} WHERE id = '{key}'")
        assert replay.of_stream(f"event:{key}").differences == (difference,)
        as_superuser(database_url, f"UPDATE event_view SET {column} = {saved} WHERE id = '{key}'")
    assert not replay.of_stream(f"event:{key}").differences
    as_superuser(database_url, f"UPDATE event_view SET id = '{UUID(int=77)}' WHERE id = '{key}'")
    assert {replayed.stream: replayed.differences for replayed in replay.of_kind("event") if replayed.differences} == {
        f"event:{key}": ("event_view has no row",),
        f"event:{UUID(int=77)}": ("event_view has a row, and the log has no events",),
    }
    as_superuser(database_url, "UPDATE record_view SET name = 'Foyer' WHERE kind = 'room'")
    assert [replayed.differences for replayed in replay.of_kind("room")] == [("record_view.name differs",)]
    assert [replayed.differences for replayed in replay.of_kind("tag")] == [()]


def test_each_kind_of_aggregate_has_a_view() -> None:
    shown: dict[str, View[Any]] = {kind: view for view in views().all for kind in view.kinds}
    assert catalogue().aggregates.keys() - shown.keys() == {"log"}
