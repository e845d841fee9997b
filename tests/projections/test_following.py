"""Followers of the log hear of new events from the announcement itself; the poll is only the net below it."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.media_event.commands import AddOrUpdateEvent
from projections.log import log_watcher
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.reader import head, read
from projections.records.references import Links
from tests.projections.feeding import event
from tests.projections.log.helpers import rows, until
from tests.workers.following import followed

ROUNDS = 16


async def test_a_follower_gets_what_is_there_in_pages_and_then_what_comes(inner: Core) -> None:
    for number in range(1, 6):
        await event(inner, number)
    async with asyncio.timeout(60):
        pages = followed(inner.database, 1, limit=3)
        assert [[one.position for one in await anext(pages)] for _ in range(2)] == [[2, 3, 4], [5]]
        coming = asyncio.ensure_future(anext(pages))
        await event(inner, 6)
        assert [one.position for one in await coming] == [6]
        await pages.aclose()


async def test_a_commit_wakes_a_follower_that_would_not_look_by_itself(inner: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event is written when the follower has just begun to wait."""
    listening = "SELECT FROM pg_stat_activity WHERE application_name = 'medialedger listener' AND query ^@ 'LISTEN'"
    async with asyncio.timeout(60):
        pages = followed(inner.database, 0)
        await event(inner, 1)
        await anext(pages)
        await until(lambda: rows(inner.database.conninfo, listening))
        monkeypatch.setattr(log_watcher, "LOOK", 3600)
        for number in range(2, 2 + ROUNDS):
            coming = asyncio.ensure_future(anext(pages))
            await event(inner, number)
            assert [one.position for one in await coming] == [number]
        await pages.aclose()


async def test_without_any_announcement_a_follower_finds_the_events_all_the_same(inner: Core) -> None:
    quiet = Appender(inner.database)
    await quiet.start()
    executor = CommandExecutor(
        quiet, inner.streams, mapper=EventMapper(inner.catalogue), views=inner.views, users=Links(inner.database), clock=inner.clock
    )
    try:
        async with asyncio.timeout(60):
            pages = followed(inner.database, 0)
            coming = asyncio.ensure_future(anext(pages))
            await executor.execute(AddOrUpdateEvent(UUID(int=1), {}), invocation=Invocation.by("system"))
            assert [one.position for one in await coming] == [1]
            await pages.aclose()
    finally:
        await quiet.stop()


async def test_a_logged_event_is_as_it_was_stored(inner: Core) -> None:
    assert (await head(inner.database), await read(inner.database, 0)) == (0, [])
    await event(inner, 1, title="Grüße")
    [one] = await read(inner.database, 0)
    assert (one.position, one.version, one.topic) == (1, 1, "event.registered")
    assert one.state == '{"timestamp":"2031-01-02T12:00:00Z","title":"Grüße"}'.encode()
    assert '"actor":"system"' in one.metadata
    assert await head(inner.database) == 1
    assert await read(inner.database, 1) == []
