"""A view that a newer build changes, while an older build lives on the same database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.wiring.core import Core
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation
from domain.record.kinds.room import Room
from domain.record.record import RegisterRecord
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import BuildTooOld, OlderBuildsRun, RunningBuild
from projections.kernel.schema.stored_views import StoredViews
from projections.kernel.schema.view import Column, View
from projections.kernel.sql.tallies import Tally, total
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from projections.record.queries import LinkUsers
from tests.projections.log.helpers import until
from tests.support.feeding import as_superuser, table

OLD = View[Room](
    name="room_name_view",
    version=1,
    kinds=("room",),
    columns=(
        Column("id", "text", lambda room: room.key),
        Column("version", "bigint", lambda room: room.version),
        Column("name", "text", lambda room: room.details.name),
        Column("deleted", "boolean", lambda room: room.deleted),
        Column("kind", "text", lambda room: room.KIND, fixed=True),
    ),
    key=("id",),
    indexes={"name": "{table} (name)"},
    tallies=(Tally("all"),),
)


NEW = replace(
    OLD,
    version=2,
    columns=(*OLD.columns, Column[Room]("length", "integer", lambda room: len(room.details.name))),
    earlier=OLD,
    from_earlier={"length": "length(name)"},
    tallies=(Tally("all"), Tally("length", value="v.length")),
)


class Process:
    """The parts of the log, the views and the register that a process of one build has."""

    def __init__(self, inner: Core, url: str, role: str | None, *, build: int, view: View[Any]) -> None:
        self.view = view
        self.database = Database(url, role=role, schema=f"build_{build}", size=2)
        self.views = StoredViews([view], self.database)
        self.appender = Appender(self.database, views=self.views)
        mapper = EventMapper(inner.catalogue)
        self._executor = CommandExecutor(
            self.appender,
            Streams(self.database, mapper),
            mapper=mapper,
            views=self.views,
            users=LinkUsers(self.database),
            clock=inner.clock,
        )
        self.running = RunningBuild(self.database, build=build, end=lambda: None)
        self._owner = Database(url, size=4)
        self.rebuilder = Rebuilder(self._owner, Streams(self._owner, mapper), app_role=role, build=build, patience=0)

    async def start(self) -> None:
        await self._owner.open()
        await self.rebuilder.ensure([self.view])
        await self.database.open()
        await self.running.start()
        await self.views.refresh()
        await self.appender.start()

    async def stop(self) -> None:
        await self.appender.stop()
        await self.running.stop()
        await self.database.close()
        await self._owner.close()

    async def add(self, key: UUID, name: str) -> None:
        await self._executor.execute(RegisterRecord(key, Room, {"name": name}), invocation=Invocation.by("system"))

    async def rename(self, key: UUID, name: str) -> None:
        await self._executor.execute(Room.amend.on(str(key), {"name": name}), invocation=Invocation.by("system"))

    async def read(self, key: UUID) -> tuple[Any, ...] | None:
        names = ", ".join(column.name for column in self.view.columns)
        return await self.database.row(f"SELECT {names} FROM room_name_view WHERE id = %s", (str(key),))

    async def total(self, dimension: str = "all", value: str = "") -> int | None:
        """Return a total; None if there is none in the form of this build."""
        condition = "dimension = %(dimension)s AND value = %(value)s AND NOT deleted"
        expression = total("room_name_view", self.view.version, condition=condition)
        row = await self.database.row(f"SELECT {expression}", {"dimension": dimension, "value": value})
        return row[0] if row else None

    async def write_until(self, done: asyncio.Event, other: Process) -> int:
        """Adds and changes, each read by this and another process as soon as it is answered. How many."""
        count = 0
        while not done.is_set():
            count += 1
            key, name = uuid4(), "a" * (count % 7 + 1)
            await self.add(key, name)
            await other.rename(key, name + "b")
            for reader in (self, other):
                shown = (str(key), 2, name + "b", False, "room", len(name) + 1)
                assert await reader.read(key) == shown[: len(reader.view.columns)]
            await asyncio.sleep(0)
        return count


@pytest.fixture
async def old(inner: Core, database_url: str, migrated: tuple[str, str | None]) -> AsyncIterator[Process]:
    as_superuser(
        database_url,
        "DROP SCHEMA IF EXISTS build_2 CASCADE",
        "DROP TABLE IF EXISTS room_name_view, room_name_view_next",
        "DELETE FROM view_versions WHERE name = 'room_name_view'",
    )
    await inner.running_build.stop()
    process = Process(inner, database_url, migrated[1], build=1, view=OLD)
    await process.start()
    yield process
    await process.stop()
    as_superuser(
        database_url,
        "DROP SCHEMA IF EXISTS build_2 CASCADE",
        "DROP TABLE IF EXISTS room_name_view, room_name_view_next",
        "DELETE FROM view_versions WHERE name = 'room_name_view'",
        "UPDATE min_build SET build = 1",
    )


@pytest.fixture
async def new(old: Process, inner: Core, database_url: str, migrated: tuple[str, str | None]) -> AsyncIterator[Process]:
    process = Process(inner, database_url, migrated[1], build=2, view=NEW)
    await process.start()
    yield process
    await process.stop()


async def test_both_builds_read_what_either_wrote_until_the_older_one_ends_and_through_the_flip(
    old: Process, new: Process, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    older_ends, flipped = asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        traffic = [tasks.create_task(process.write_until(older_ends, other)) for process, other in ((old, new), (new, old))]
        finishing = tasks.create_task(new.rebuilder.finish([NEW]))
        await until(lambda: "room_name_view version 2 has to wait while build 1 runs" in caplog.text)
        assert not finishing.done()
        older_ends.set()
        assert all([await each > 0 for each in traffic])
        alone = tasks.create_task(new.write_until(flipped, new))
        await old.running.stop()
        assert await finishing == ["room_name_view"]
        await new.add(UUID(int=1), "after the flip")
        flipped.set()
        assert await alone > 0
    assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 1, "after the flip", False, "room", 14)
    live = await table(new.database, NEW)
    assert len(live) == (await new.database.row("SELECT count(DISTINCT originator_id) FROM events") or (0,))[0]
    await new.rebuilder.rebuild(NEW)
    assert await table(new.database, NEW) == live
    assert await new.database.row("SELECT to_regnamespace('build_2') IS NULL") == (True,)


async def test_totals_are_those_of_the_rows_whichever_build_wrote_them(old: Process, new: Process) -> None:
    """The triggers belong to the table. Until the flip it has the totals of the older build; the newer one counts."""
    for number, writer in enumerate((old, new, old, new), start=1):
        await writer.add(UUID(int=number), "Hall")
    await old.rename(UUID(int=2), "Attic")
    assert (await old.total(), await new.total()) == (4, None)
    await old.running.stop()
    await new.rebuilder.finish([NEW])
    await new.add(UUID(int=5), "Attic")
    assert (await old.total(), await new.total()) == (None, 5)
    assert [await new.total("length", str(length)) for length in (4, 5, 6)] == [3, 2, 0]


class TestAfterTheFlip:
    @pytest.fixture(autouse=True)
    async def flip(self, old: Process, new: Process) -> None:
        await old.add(UUID(int=1), "Hall")
        await old.running.stop()
        await new.rebuilder.finish([NEW])

    async def test_an_older_process_that_was_taken_for_dead_writes_nothing(self, old: Process, new: Process) -> None:
        for wanted in (old.rename(UUID(int=1), "Studio"), old.add(UUID(int=2), "Attic")):
            with pytest.raises(Unavailable, match="room_name_view has version 2 in the database, and this build writes version 1"):
                await wanted
        assert await new.database.row("SELECT count(*) FROM events") == (1,)
        assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 1, "Hall", False, "room", 4)

    async def test_a_process_that_writes_the_earlier_version_goes_over_at_its_next_write(self, new: Process) -> None:
        """Commands that wait together, with rows of both versions, are all written once."""
        await new.rename(UUID(int=1), "Studio")
        keys = [uuid4() for _ in range(20)]
        await asyncio.gather(*(new.add(key, "Attic") for key in keys))
        assert [await new.read(key) for key in keys] == [(str(key), 1, "Attic", False, "room", 5) for key in keys]
        assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 2, "Studio", False, "room", 6)
        assert await new.database.row("SELECT count(*) FROM events") == (22,)

    async def test_the_older_build_neither_starts_nor_turns_the_view_back(self, old: Process, new: Process) -> None:
        with pytest.raises(
            BuildTooOld, match=r"this is build 1, and the database needs build 2 or newer \(room_name_view version 2\)"
        ):
            await old.running.start()
        for turned_back in (old.rebuilder.ensure([OLD]), old.rebuilder.rebuild(OLD)):
            with pytest.raises(Unavailable, match="room_name_view belongs to a newer build"):
                await turned_back
        assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 1, "Hall", False, "room", 4)


class TestWhileTheOlderBuildLives:
    async def test_its_rebuild_leaves_the_newer_form_to_the_newer_build(self, old: Process, new: Process) -> None:
        await old.add(UUID(int=1), "Hall")
        await old.rebuilder.rebuild(OLD)
        await new.rename(UUID(int=1), "Studio")
        assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 2, "Studio", False, "room", 6)
        assert await old.read(UUID(int=1)) == (str(UUID(int=1)), 2, "Studio", False, "room")

    async def test_it_may_start_again(self, old: Process, new: Process) -> None:
        await old.running.stop()
        assert await old.rebuilder.ensure([OLD]) == []
        await old.running.start()

    async def test_the_new_version_is_not_built_by_hand(self, new: Process) -> None:
        with pytest.raises(OlderBuildsRun, match="room_name_view version 2 has to wait while build 1 runs"):
            await new.rebuilder.rebuild(NEW)
        assert await new.database.row("SELECT to_regclass('room_name_view_next') IS NULL") == (True,)

    async def test_a_second_process_of_the_newer_build_starts(
        self, new: Process, inner: Core, database_url: str, migrated: tuple[str, str | None]
    ) -> None:
        second = Process(inner, database_url, migrated[1], build=2, view=NEW)
        await second.start()
        await second.add(UUID(int=1), "Hall")
        assert await new.read(UUID(int=1)) == (str(UUID(int=1)), 1, "Hall", False, "room", 4)
        await second.stop()

    async def test_a_build_that_does_not_know_the_version_before_does_not_start_beside_it(
        self, old: Process, inner: Core, database_url: str, migrated: tuple[str, str | None]
    ) -> None:
        later = Process(inner, database_url, migrated[1], build=3, view=replace(NEW, version=3, earlier=NEW))
        await later._owner.open()
        with pytest.raises(OlderBuildsRun, match="room_name_view version 3 has to wait while build 1 runs"):
            await later.rebuilder.ensure([later.view])
        await old.running.stop()
        assert await later.rebuilder.ensure([later.view]) == ["room_name_view"]
        await later._owner.close()


async def test_a_kind_that_no_older_build_knows_is_added_beside_it(old: Process, new: Process) -> None:
    """There are no events of it, so nothing has to be built."""
    wider = replace(OLD, kinds=("room", "studio"))
    assert await new.rebuilder.ensure([wider]) == []
    assert await new.database.row("SELECT kinds FROM view_versions WHERE name = 'room_name_view'") == (["room", "studio"],)
    extended = replace(OLD, kinds=("room", "studio", "tag"))
    await old.running.stop()
    assert await new.rebuilder.ensure([extended]) == ["room_name_view"], "tags may have been written meanwhile"
