"""A view built again from the log, beside the live one and under traffic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest

from api.wiring.catalogue import RECORD_VIEW, views
from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.client.aggregate import NewKey
from domain.client.commands import RegisterClient
from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from domain.provision.aggregate import ProvisionInfo
from domain.provision.commands import OpeningCommand
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from domain.record.kinds.category import Category
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.kinds.room import Room
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries
from projections.event.view import EVENT_VIEW
from projections.kernel.database.database import Database
from projections.kernel.schema.view import Column, View
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.domain.composition.compositions_given import PLAYLIST
from tests.domain.provision.provisions_given import EVENT, KEY, PLAN
from tests.projections.content_key.issuing import handlers_on, issue_one, key_request
from tests.projections.job.jobs_made import accept
from tests.projections.log.helpers import until
from tests.support.feeding import as_superuser, do, event, record, room, table, tag


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url, size=4)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def rebuilder(owner: Database, inner: Core, migrated: tuple[str, str | None]) -> Rebuilder:
    return Rebuilder(owner, Streams(owner, EventMapper(inner.catalogue)), app_role=migrated[1])


async def some_traffic(inner: Core) -> None:
    hall, football = await room(inner, 11, "Hall"), await tag(inner, 21, "football")
    for number in range(1, 6):
        await event(inner, number, title=f"Event {number}", room_id=hall, tag_ids=(football,))
    await do(inner, MediaEvent.change_state.on(UUID(int=1), EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await do(inner, MediaEvent.delete.on(UUID(int=2)))
    await room(inner, 12, "Gone")
    await do(inner, Room.delete.on(str(UUID(int=12))))
    await do(inner, RegisterClient("studio", ("viewer",), NewKey("k", "aa")))
    news = await record(inner, Category, 31, name="News", label="news")
    await record(inner, CategoryProperty, 41, owner_id=news, category="a", key="b", value="c")
    await issue_one(handlers_on(inner), key_request())
    await accept(inner, 51)
    modified = datetime(2031, 1, 2, tzinfo=UTC)
    discover = Asset.discover.on(UUID(int=61), event_id=UUID(int=1), name="a.mp4", path="1/a.mp4", size=3, modified=modified)
    await do(inner, discover)
    request = ProvisionInfo.provision.on(KEY, PLAN, allow_updates=False, client="studio", moment=modified).as_planned(0)
    await do(inner, OpeningCommand(key=KEY, decision=request, event_id=EVENT, infrastructure_key="k", moment=modified))
    published = Publication.schedule.on(
        UUID(int=71),
        kind=PublicationKind.VOD,
        content_id="film",
        destination_id=UUID(int=72),
        target=Target.S3,
        transaction_id=UUID(int=73),
        client="studio",
        text=PublicationText(title="Final"),
        fault=(PublicationState.FailedDestination, "the destination is not active"),
    )
    await do(inner, published)
    kind = CompositionKind.ENCODER
    await do(inner, Composition.compose.on(UUID(int=74), event_id=UUID(int=1), kind=kind, playlist=PLAYLIST, client="studio"))


async def test_a_rebuilt_view_is_the_live_one(inner: Core, rebuilder: Rebuilder) -> None:
    await some_traffic(inner)
    for view in views().all:
        live = await table(inner.database, view)
        assert live
        rebuilt = await rebuilder.rebuild(view)
        assert await table(inner.database, view) == live
        assert (rebuilt.rows, rebuilt.position) == (len(live), 23)


async def test_a_rebuild_repairs_a_damaged_view(inner: Core, rebuilder: Rebuilder, database_url: str) -> None:
    await some_traffic(inner)
    live = await table(inner.database, EVENT_VIEW)
    as_superuser(
        database_url,
        "DELETE FROM event_view WHERE state = 2",
        "UPDATE event_view SET title = 'x', version = version + 50",
        "INSERT INTO event_view (id, version) VALUES (gen_random_uuid(), 1)",
    )
    assert await table(inner.database, EVENT_VIEW) != live
    progress: list[int] = []
    rebuilt = await rebuilder.rebuild(EVENT_VIEW, progress=progress.append)
    assert await table(inner.database, EVENT_VIEW) == live
    assert (rebuilt.events, progress[-1]) == (7, 7)


async def test_whoever_waits_for_another_rebuild_says_for_which_process(
    inner: Core, owner: Database, migrated: tuple[str, str | None], caplog: pytest.LogCaptureFixture
) -> None:
    """A process that is frozen during a rebuild keeps the lock forever."""
    streams = Streams(owner, EventMapper(inner.catalogue))
    frozen, waiting = (Rebuilder(owner, streams, app_role=migrated[1], say_after=seconds) for seconds in (30.0, 0.01))
    async with frozen._alone(EVENT_VIEW) as connection:
        rebuilding = asyncio.create_task(waiting.rebuild(EVENT_VIEW))
        await until(
            lambda: (
                f"event_view is being rebuilt by another process (PostgreSQL process {connection.info.backend_pid}," in caplog.text
            )
        )
        async with waiting._alone(RECORD_VIEW):
            """Another view has a lock of its own."""
    assert (await rebuilding).rows == 0


async def test_an_empty_log_makes_an_empty_view(inner: Core, rebuilder: Rebuilder) -> None:
    rebuilt = await rebuilder.rebuild(RECORD_VIEW)
    assert (rebuilt.events, rebuilt.rows, rebuilt.position) == (0, 0, 0)
    await room(inner, 1, "Hall")
    assert len(await table(inner.database, RECORD_VIEW)) == 1


async def test_the_leftovers_of_a_rebuild_that_died_do_no_harm(inner: Core, rebuilder: Rebuilder, database_url: str) -> None:
    as_superuser(database_url, "CREATE TABLE event_view_next (something text)")
    await event(inner, 1)
    assert (await rebuilder.rebuild(EVENT_VIEW)).rows == 1


async def test_the_new_table_has_the_key_and_every_index_under_the_live_name(inner: Core, rebuilder: Rebuilder) -> None:
    asked = "SELECT indexname, replace(indexdef, 'event_view_next', 'event_view') FROM pg_indexes WHERE tablename = 'event_view'"
    before: dict[str, str] = dict(await inner.database.rows(asked))
    assert before.keys() == {EVENT_VIEW.key_name, *(f"event_view_{name}" for name in EVENT_VIEW.indexes)}
    await rebuilder.rebuild(EVENT_VIEW)
    await rebuilder.rebuild(EVENT_VIEW)
    assert dict(await inner.database.rows(asked)) == before


MANY = """
SELECT log_append(array_agg(ROW('event:00000000-0000-0000-0000-' || lpad(stream::text, 12, '0'), version,
    CASE version WHEN 1 THEN 'event.registered' ELSE 'event.described' END, gen_random_uuid(),
    convert_to('{"timestamp":"2031-01-02T12:00:00Z","title":"' || version || '"}', 'UTF8'),
    '{"actor":"system","correlation_id":"x"}', uuid_send(gen_random_uuid()))::appended_event ORDER BY version, stream), sha256(''))
FROM generate_series(1, 1900) AS s(stream), generate_series(1::bigint, 7) AS v(version)
"""


async def test_a_log_of_several_pages_loses_no_stream_and_cuts_none_in_two(
    inner: Core, rebuilder: Rebuilder, database_url: str
) -> None:
    """1,900 streams of seven events: no page of 5,000 ends where a stream does."""
    as_superuser(database_url, MANY)
    progress: list[int] = []
    rebuilt = await rebuilder.rebuild(EVENT_VIEW, progress=progress.append)
    assert (rebuilt.events, rebuilt.rows) == (13_300, 1_900)
    assert (len(progress) > 2, progress[-1]) == (True, 13_300)
    assert all(count % 7 == 0 for count in progress)
    assert await inner.database.rows("SELECT DISTINCT version, title FROM event_view") == [(7, "7")]


async def test_large_events_are_folded_a_few_at_a_time(inner: Core, rebuilder: Rebuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projections.log.rebuild._FETCHED", 2)
    for number in range(1, 21):
        await event(inner, number, title=f"Match {number}", description="x" * 900_000)
    progress: list[int] = []
    rebuilt = await rebuilder.rebuild(EVENT_VIEW, progress=progress.append)
    assert rebuilt.rows == 20
    assert max(b - a for a, b in pairwise([0, *progress])) <= 8, "4 MiB, and what was fetched with them"


class TestUnderTraffic:
    """Writers write and readers read for as long as the rebuilds run; nobody fails and nothing is lost."""

    async def test_after_rebuilds_under_traffic_the_view_agrees_with_the_log(self, inner: Core, rebuilder: Rebuilder) -> None:
        for number in range(1, 41):
            await event(inner, number, title=f"Event {number}")
        rebuilding = asyncio.Event()
        rebuilding.set()
        written, read = [0] * 4, [0, 0]

        async def write(writer: int) -> None:
            while rebuilding.is_set():
                written[writer] += 1
                key = UUID(int=1 + (written[writer] * 7 + writer) % 60)
                await do(inner, AddOrUpdateEvent(key, {"title": f"by {writer}", "ref_id": str(written[writer])}))

        async def look(reader: int) -> None:
            queries = EventQueries(inner.database)
            while rebuilding.is_set():
                read[reader] += 1
                page = await queries.page(EventFilter(search="by"))
                assert page.total >= len(page.results)
                assert await queries.by_id(UUID(int=1)) is not None, "an Event must never be missed"

        async def rebuild() -> None:
            try:
                for _ in range(3):
                    await rebuilder.rebuild(EVENT_VIEW)
            finally:
                rebuilding.clear()

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(write(number))
            for number in range(2):
                tasks.create_task(look(number))
            tasks.create_task(rebuild())
        assert min(*written, *read) > 0
        live = await table(inner.database, EVENT_VIEW)
        await rebuilder.rebuild(EVENT_VIEW)
        assert await table(inner.database, EVENT_VIEW) == live

    async def test_a_writer_sees_its_own_write_through_the_flip(self, inner: Core, rebuilder: Rebuilder) -> None:
        queries = EventQueries(inner.database)
        key = await event(inner, 1)
        rebuilding = asyncio.create_task(rebuilder.rebuild(EVENT_VIEW))
        count = 0
        while not rebuilding.done():
            count += 1
            await do(inner, AddOrUpdateEvent(key, {"title": str(count)}))
            row = await queries.by_id(key)
            assert row is not None
            assert (row.version, row.details.title) == (count + 1, str(count))
        await rebuilding
        assert count > 0


TOY = View[Room](
    name="room_name_view",
    version=1,
    kinds=("room",),
    columns=(
        Column("id", "text", lambda room: room.key),
        Column("version", "bigint", lambda room: room.version),
        Column("name", "text", lambda room: room.details.name),
    ),
    key=("id",),
    indexes={"name": "{table} (name)"},
)


@pytest.fixture
def tidy(database_url: str) -> Iterator[None]:
    yield
    as_superuser(
        database_url,
        "DROP TABLE IF EXISTS room_name_view, room_name_view_next",
        "DELETE FROM view_versions WHERE name = 'room_name_view'",
    )


@pytest.mark.usefixtures("tidy")
class TestEnsure:
    async def test_a_view_of_this_version_is_not_built_again(self, rebuilder: Rebuilder) -> None:
        assert await rebuilder.ensure(views().all) == []

    async def test_a_missing_view_is_built_from_the_log_and_the_product_may_read_and_write_it(
        self, inner: Core, rebuilder: Rebuilder
    ) -> None:
        await room(inner, 1, "Hall")
        assert await rebuilder.ensure([*views().all, TOY]) == ["room_name_view"]
        assert await inner.database.rows("SELECT * FROM room_name_view") == [(str(UUID(int=1)), 1, "Hall")]
        assert await inner.database.execute("UPDATE room_name_view SET name = 'x'") == 1

    async def test_a_view_of_another_version_is_built_again_with_its_new_columns(self, inner: Core, rebuilder: Rebuilder) -> None:
        await room(inner, 1, "Hall")
        await rebuilder.ensure([TOY])
        length = Column[Room]("length", "bigint", lambda room: len(room.details.name))
        newer = replace(TOY, version=2, columns=(*TOY.columns, length))
        assert await rebuilder.ensure([newer]) == ["room_name_view"]
        assert await inner.database.rows("SELECT * FROM room_name_view") == [(str(UUID(int=1)), 1, "Hall", 4)]
        assert await rebuilder.ensure([newer]) == []
        for never_back in (rebuilder.ensure([TOY]), rebuilder.rebuild(TOY)):
            with pytest.raises(Unavailable, match="room_name_view belongs to a newer build"):
                await never_back
        assert await inner.database.rows("SELECT * FROM room_name_view") == [(str(UUID(int=1)), 1, "Hall", 4)]

    async def test_a_view_that_lacks_a_kind_is_built_again_and_one_that_has_more_is_not(
        self, inner: Core, rebuilder: Rebuilder
    ) -> None:
        await room(inner, 1, "Hall")
        await tag(inner, 2, "ski")
        await rebuilder.ensure([TOY])
        wider = replace(TOY, kinds=("room", "tag"))
        assert await rebuilder.ensure([wider]) == ["room_name_view"]
        assert [name for _, _, name in await inner.database.rows("SELECT * FROM room_name_view ORDER BY id")] == ["Hall", "ski"]
        assert await rebuilder.ensure([TOY]) == [], "an older release does not take a kind away"
        with pytest.raises(Unavailable, match="room_name_view belongs to a newer build"):
            await rebuilder.rebuild(TOY)

    async def test_of_two_that_start_together_one_builds(self, inner: Core, rebuilder: Rebuilder) -> None:
        await room(inner, 1, "Hall")
        built = await asyncio.gather(rebuilder.ensure([TOY]), rebuilder.ensure([TOY]))
        assert sorted(built) == [[], ["room_name_view"]]
