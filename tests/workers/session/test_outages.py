"""A worker without answers of the database: its sessions may continue to send, or be started by another worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.wiring.core import Core
from projections.kernel.database.database import Database
from tests.support.link import Link
from tests.support.sessions import LEASE, World, an_event, channel_of, go_live, member, stop, until

LONG = 6.0
"""A lease that a busy machine can keep: a process that was frozen for a third of it asks the database before it sends."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def link(database_url: str) -> AsyncIterator[Link]:
    async with Link.to_postgres(database_url) as between:
        yield between


@pytest.fixture
async def far(link: Link, database_url: str) -> AsyncIterator[Database]:
    """Return the database behind the link."""
    async with Database(link.through(database_url), size=4) as pool:
        yield pool


async def lost(link: Link, how: str) -> None:
    if how == "swallowed":
        link.swallow()
    else:
        await link.close()


async def reconnect(link: Link, how: str) -> None:
    if how == "swallowed":
        link.replace()
    else:
        await link.open()


ways = pytest.mark.parametrize("how", ["swallowed", "refused"])


@ways
async def test_the_only_worker_stays_on_the_air_while_the_database_is_away(
    inner: Core, far: Database, link: Link, world: World, how: str
) -> None:
    event = await an_event(inner, 1)
    channel = channel_of(event)
    async with member(far, world, lease=LONG) as first_member:
        await go_live(inner, event)
        await until(world.has_reported("started"))
        await until(world.sends(channel))
        await lost(link, how)
        await asyncio.sleep(LONG + 2)
        await until(world.sends(channel), seconds=20)
        await reconnect(link, how)
        before = first_member.worker._assignment.until
        await until(lambda: first_member.worker._assignment.until > before)
        await until(world.sends(channel))
        assert len(world.numbers(channel)) == 1, "it was not started again"
        await stop(inner, event)
        await until(lambda: not first_member.worker.sessions)
    world.check()


@ways
async def test_what_was_stopped_while_the_database_was_away_is_stopped_when_it_answers(
    inner: Core, far: Database, link: Link, world: World, how: str
) -> None:
    event = await an_event(inner, 1)
    channel = channel_of(event)
    async with member(far, world, lease=LONG) as first_member:
        await go_live(inner, event)
        await until(world.sends(channel))
        await lost(link, how)
        await stop(inner, event)
        await until(world.sends(channel), seconds=20)
        await reconnect(link, how)
        await until(lambda: not first_member.worker.sessions)
        assert await world.silent(channel)
    assert len(world.numbers(channel)) == 1


@ways
async def test_a_worker_that_alone_is_cut_off_falls_silent_before_another_starts(
    inner: Core, far: Database, link: Link, world: World, how: str
) -> None:
    events = [await an_event(inner, number) for number in range(1, 7)]
    async with member(far, world, name="far") as first_member, member(inner.database, world, name="near") as second_member:
        for key in events:
            await go_live(inner, key)
        await until(world.has_reported("started", len(events)))
        await until(lambda: first_member.worker._assignment.alive == 2)
        await lost(link, how)
        await until(lambda: len(second_member.worker.sessions) == len(events))
        for key in events:
            await until(world.sends(channel_of(key)))
        world.check()
        await reconnect(link, how)
        await until(lambda: not first_member.worker.sessions)
        await asyncio.sleep(LEASE)
        for key in events:
            await until(world.sends(channel_of(key)))
    world.check()
