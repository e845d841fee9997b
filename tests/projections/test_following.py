"""Followers of the log hear of new events from the announcement itself; the poll is only the net below it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from projections.kernel.database.database import Database
from projections.log import log_watcher
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.log_watcher import LogWatcher
from projections.log.reader import HEAD, head, read
from projections.record.queries import LinkUsers
from tests.projections.log.helpers import rows, until
from tests.support.feeding import event
from tests.workers.following import followed

ROUNDS = 16


async def test_a_follower_gets_existing_events_in_pages_and_then_new_ones(inner: Core) -> None:
    for number in range(1, 6):
        await event(inner, number)
    async with asyncio.timeout(60):
        pages = followed(inner.database, 1, limit=3)
        assert [[logged.position for logged in await anext(pages)] for _ in range(2)] == [[2, 3, 4], [5]]
        coming = asyncio.ensure_future(anext(pages))
        await event(inner, 6)
        assert [logged.position for logged in await coming] == [6]
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
            assert [logged.position for logged in await coming] == [number]
        await pages.aclose()


class Counting(Database):
    """Counts the queries for the end of the log."""

    looks = 0

    async def rows(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[TupleRow]:
        self.looks += question == HEAD
        return await super().rows(question, parameters)


async def test_readers_that_have_read_all_share_one_look_at_the_end(inner: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is made when somebody says that the log grew, or after some time."""
    monkeypatch.setattr(log_watcher, "LOOK", 3600)
    await event(inner, 1)
    async with Counting(inner.database.conninfo, size=2) as database:
        watcher = LogWatcher(database)
        assert await asyncio.gather(*(watcher.ends_at(1) for _ in range(20))) == [True] * 20
        await event(inner, 2)
        assert (await watcher.ends_at(1), database.looks) == (True, 1)
        watcher.grew()
        assert (await watcher.ends_at(1), await watcher.ends_at(2), database.looks) == (False, True, 2)
        await event(inner, 3)
        monkeypatch.setattr(log_watcher, "LOOK", 0)
        assert (await watcher.ends_at(2), database.looks) == (False, 3)


async def test_a_failed_read_fails_for_all_waiting_callers(inner: Core) -> None:
    database = Database(inner.database.conninfo, size=2)
    watcher = LogWatcher(database)
    results = await asyncio.gather(*(watcher.ends_at(0) for _ in range(3)), return_exceptions=True)
    assert [type(fault) for fault in results] == [Unavailable] * 3
    async with database:
        assert await watcher.ends_at(0)


async def test_without_any_announcement_a_follower_finds_the_events_all_the_same(inner: Core) -> None:
    quiet = Appender(inner.database)
    await quiet.start()
    executor = CommandExecutor(
        quiet,
        inner.streams,
        mapper=EventMapper(inner.catalogue),
        views=inner.views,
        users=LinkUsers(inner.database),
        clock=inner.clock,
    )
    try:
        async with asyncio.timeout(60):
            pages = followed(inner.database, 0)
            coming = asyncio.ensure_future(anext(pages))
            await executor.execute(AddOrUpdateEvent(UUID(int=1), {}), invocation=Invocation.by("system"))
            assert [event.position for event in await coming] == [1]
            await pages.aclose()
    finally:
        await quiet.stop()


async def test_a_logged_event_is_as_it_was_stored(inner: Core) -> None:
    assert (await head(inner.database), await read(inner.database, 0)) == (0, [])
    await event(inner, 1, title="Grüße")
    [logged] = await read(inner.database, 0)
    assert (logged.position, logged.version, logged.topic) == (1, 1, "event.registered")
    assert logged.state == '{"timestamp":"2031-01-02T12:00:00Z","title":"Grüße"}'.encode()
    assert '"actor":"system"' in logged.metadata
    assert await head(inner.database) == 1
    assert await read(inner.database, 1) == []
