"""Views and claims against a real PostgreSQL: whatever happened, and however often a row comes, they show what the log says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api.wiring.catalogue import RECORDS, views
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command
from domain.kernel.errors import DomainError
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from projections.event.view import EVENT_VIEW
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from projections.record.queries import LinkUsers
from tests.properties.histories import client_lives, event_commands, record_commands
from tests.properties.test_assets import asset_commands
from tests.properties.test_decisions import lived, replayed
from tests.properties.test_jobs import job_lives
from tests.support.clock import HandClock
from tests.support.feeding import shown, table
from tests.support.postgres import empty

LIVE = settings(
    max_examples=settings().max_examples // 8,  # a thorough run has five times as many
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a failure small would take minutes against a database
)
EVENTS = [UUID(int=number) for number in (1, 2, 3)]
KEYS = [UUID(int=number) for number in (1, 2, 3, 4)]

traffic = st.lists(
    st.one_of(
        st.sampled_from(EVENTS).flatmap(event_commands),
        st.sampled_from(KEYS).flatmap(asset_commands),
        st.tuples(st.sampled_from(RECORDS), st.sampled_from(KEYS)).flatmap(lambda of: record_commands(*of)),
        st.tuples(st.sampled_from([Room, Tag, Category, CategoryProperty]), st.sampled_from(KEYS)).flatmap(
            lambda of: record_commands(*of)
        ),
    ),
    max_size=40,
)
"""About Events, assets, what they mostly point at, and all else, with so few ids that links are often made and often refused."""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url, size=4)
    await database.open()
    yield database
    await database.close()


def afresh(inner: Core) -> CommandExecutor:
    """An empty log, and a executor that has not seen it before: each example stands alone."""
    empty(inner.database.conninfo)
    return CommandExecutor(
        inner.appender,
        inner.streams,
        mapper=EventMapper(inner.catalogue),
        views=inner.views,
        users=LinkUsers(inner.database),
        clock=inner.clock,
    )


async def carried_out(executor: CommandExecutor, commands: list[Command[Any]]) -> None:
    for command in commands:
        with suppress(DomainError):
            await executor.execute(command, invocation=Invocation.by("somebody"))


async def everything(inner: Core) -> dict[str, list[tuple[Any, ...]]]:
    return {view.name: await shown(inner.database, view) for view in views().all}


async def every_aggregate(streams: Streams, database: Database) -> list[AggregateRoot]:
    rows = await database.rows("SELECT originator_id, originator_version, topic, state FROM events ORDER BY 1, 2")
    return list(streams.fold(rows).values())


@LIVE
@given(
    commands=traffic,
    life=client_lives("studio", longest=8),
    jobs=st.tuples(job_lives(1), job_lives(2)),
    pace=st.integers(0, 3),
)
@pytest.mark.thorough
async def test_after_any_traffic_views_and_claims_agree_with_the_log(
    inner: Core,
    owner: Database,
    migrated: tuple[str, str | None],
    clock: HandClock,
    commands: list[Command[Any]],
    life: list[Command[Any]],
    jobs: tuple[list[Command[Any]], ...],
    pace: int,
) -> None:
    executor = afresh(inner)
    lanes: list[list[Command[Any]]] = [[command] for command in commands] if pace == 0 else [commands[n::pace] for n in range(pace)]
    clock.forward(milliseconds=37)
    await asyncio.gather(*(carried_out(executor, lane) for lane in [*lanes, life, *jobs]))

    live = await everything(inner)
    streams = Streams(owner, EventMapper(inner.catalogue))
    for view in views().all:
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(view)
    assert await everything(inner) == live

    roots = await every_aggregate(streams, owner)
    rows = await owner.rows("SELECT scope, value, owner FROM unique_claims")
    assert sorted(rows) == sorted((claim.scope, claim.value, claim.owner) for root in roots for claim in root.claims())
    stand = await owner.rows("SELECT stream FROM link_targets")
    assert sorted(stream for (stream,) in stand) == sorted(root.id for root in roots if root.linkable())
    pointing = {(root.id, target) for root in roots for target in root.links()}
    linked = {(holder, target) for holder, target in await owner.rows("SELECT owner, target FROM links")}
    restored = {stream for (stream,) in await owner.rows("SELECT originator_id FROM events WHERE topic = 'event.restored'")}
    assert linked <= pointing
    assert {holder for holder, _ in pointing - linked} <= restored, "only what comes back may point at what is gone"
    assert await owner.rows("SELECT count(*), max(position) FROM events HAVING count(*) <> max(position)") == []


@LIVE
@given(commands=st.lists(event_commands(UUID(int=1)), min_size=1, max_size=12), data=st.data())
async def test_rows_in_any_order_and_number_leave_the_newest(
    owner: Database, commands: list[Command[MediaEvent]], data: st.DataObject
) -> None:
    log, _ = lived(commands)
    versions = [root for end in range(1, len(log) + 1) if (root := replayed(log[:end])) is not None]
    if not versions:
        return
    rows = [row for root in versions for row in EVENT_VIEW.rows(root)]
    fed = data.draw(st.lists(st.sampled_from(rows), max_size=8))
    shuffled = data.draw(st.permutations([*fed, rows[-1]]))
    assert await fed_alone(owner, shuffled) == await fed_alone(owner, rows[-1:])


async def fed_alone(owner: Database, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the view that these rows, applied one after the other, make of an empty one."""
    await owner.execute("DELETE FROM event_view")
    async with owner.connection() as connection:
        for row in rows:
            await connection.execute(EVENT_VIEW.upsert("event_view", ""), EVENT_VIEW.pack([row]), binary=True)
    return await table(owner, EVENT_VIEW)


@settings(LIVE)
@given(commands=st.lists(event_commands(UUID(int=1)), max_size=10), cut=st.integers(0, 30))
async def test_an_aggregate_loaded_from_a_snapshot_equals_the_one_in_memory(
    inner: Core, owner: Database, commands: list[Command[MediaEvent]], cut: int
) -> None:
    executor = afresh(inner)
    await asyncio.gather(*(carried_out(executor, [command]) for command in commands))
    streams = Streams(owner, EventMapper(inner.catalogue))
    stream = MediaEvent.stream(UUID(int=1))
    rows = await owner.rows(
        "SELECT originator_id, originator_version, topic, state FROM events WHERE originator_id = %s ORDER BY 2", (stream,)
    )
    if not rows:
        return
    early = streams.fold(rows[: 1 + cut % len(rows)])[stream]
    await owner.execute("DELETE FROM snapshots")
    await streams.keep(stream, version=early.version, snapshot=early.snapshot())
    assert await streams.load(stream) == streams.fold(rows)[stream]
