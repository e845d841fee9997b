"""Totals of lists: whatever happened, by how many writers, they are what counting gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.wiring.catalogue import views
from api.wiring.core import Core
from domain.event.values import EventState
from domain.kernel.command import Command
from projections.event.filters import EventFilter, Ids, list_query
from projections.event.totals import tallied
from projections.event.view import EVENT_VIEW
from projections.kernel.database.database import Database
from projections.kernel.sql.tallies import Tallies
from projections.log.rebuild import Rebuilder
from tests.properties.histories import moments
from tests.properties.test_views import KEYS, LIVE, afresh, carried_out, traffic

NO_FILTER = EventFilter()
PARTS: list[dict[str, Any]] = [{part: key} for part, key in product(["room_id", "event_type_id", "tag_id", "category_id"], KEYS)]
ALONE = [
    NO_FILTER,
    *(EventFilter(states=[state]) for state in EventState),
    EventFilter(states=[EventState.STOPPED, EventState.PRE_LIVE, EventState.STOPPED]),
    EventFilter(contains_flow=True),
    *(replace(NO_FILTER, **parts) for parts in PARTS),
]
NAMED = [(part, [key]) for part, key in product(["room", "event_type", "channel", "tags", "categories"], KEYS)] + [("room", KEYS)]


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, size=4) as database:
        yield database


async def differences(database: Database, filters: list[EventFilter]) -> list[Any]:
    """The filters whose total differs from what counting gives in the same snapshot."""
    cases: list[tuple[EventFilter, Ids]] = [(filter_, {}) for filter_ in filters] + [
        (NO_FILTER, {part: keys}) for part, keys in NAMED
    ]
    wrong = []
    for (filter_, ids), deleted in product(cases, [False, True]):
        asked = replace(filter_, deleted=deleted)
        query, total = list_query(asked, ids), tallied(asked, ids)
        assert total is not None, asked
        expression, parameters = total
        assert not parameters.keys() & query.parameters.keys()
        [[stored_total, counted]] = await database.rows(f"SELECT {expression}, ({query.count})", {**query.parameters, **parameters})
        if stored_total != counted:
            wrong.append((asked, ids, stored_total, counted))
    return wrong


@pytest.mark.thorough
@LIVE
@given(commands=traffic, begin=moments, length=st.timedeltas(timedelta(days=2), timedelta(days=30_000)))
async def test_totals_are_counts_during_and_after_any_traffic(
    inner: Core,
    second: Core,
    owner: Database,
    migrated: tuple[str, str | None],
    commands: list[Command[Any]],
    begin: datetime,
    length: timedelta,
) -> None:
    first, other = afresh(inner), afresh(second)
    end = begin + length
    ranges = [EventFilter(scheduled_from=begin), EventFilter(scheduled_to=end), EventFilter(scheduled_from=begin, scheduled_to=end)]
    ranges += [replace(query, states=[EventState.STOPPED, EventState.LIVE_PUBLISHED]) for query in ranges]
    filters, tallies = [*ALONE, *ranges], Tallies(inner.database)
    writers = asyncio.gather(*(carried_out(writer, commands[n::2]) for n, writer in enumerate((first, other))))

    async def add_up() -> None:
        while not writers.done():
            await tallies.add_up()

    async def look() -> list[Any]:
        wrong: list[Any] = []
        while not writers.done() and not wrong:
            wrong = await differences(owner, [NO_FILTER, EventFilter(states=[EventState.PRE_LIVE]), ranges[2]])
        return wrong

    _, _, _, during = await asyncio.gather(writers, add_up(), add_up(), look())
    assert during == []
    assert await differences(owner, filters) == []
    while await tallies.add_up():
        pass
    assert await differences(owner, filters) == []
    await Rebuilder(owner, inner.streams, app_role=migrated[1]).rebuild(EVENT_VIEW)
    assert await differences(owner, filters) == []
    await tallies.add_up()
    await Tallies(owner).forget()
    assert await differences(owner, filters) == []
    is_empty = not await owner.rows("SELECT FROM event_view LIMIT 1")
    counted = 0 if is_empty else sum(bool(view.tallies) for view in views().all)
    assert await owner.rows("SELECT count(DISTINCT generation) FROM view_tally_progress") == [(counted,)]
