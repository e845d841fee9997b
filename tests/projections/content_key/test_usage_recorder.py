"""The usage recorder: one event per key and hour, all uses shown, nothing lost at a stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import Core, core
from domain.content_key.aggregate import ContentKey, Usage
from domain.content_key.handlers import PlainKey
from domain.content_key.usage import KeyUse, UsageTotal
from domain.kernel.errors import Unavailable
from domain.kernel.mapper import EventMapper
from projections.content_key.queries import ContentKeyQueries
from projections.content_key.usage import UsageCounts
from projections.content_key.view import CONTENT_KEY_VIEW
from projections.kernel.database.database import Database
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.projections.content_key.issuing import handlers_on, issue, issue_one, key_request, let_an_hour_pass, topics
from tests.projections.log.helpers import Wire, until
from tests.support.clock import NOON, HandClock
from tests.support.feeding import table


def use(key: PlainKey | UUID, *systems: str, version: str = "1", transaction: str = "t-1") -> KeyUse:
    return KeyUse(key if isinstance(key, UUID) else key.id, "studio", systems or ("WIDEVINE",), version, transaction)


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Wire]:
    async with Wire(database_url) as between:
        yield between


async def recorded(inner: Core, key: PlainKey) -> Usage | None:
    [root] = (await inner.streams.load.many([ContentKey.stream(key.id)])).values()
    assert isinstance(root, ContentKey)
    return root.usage


async def shown(inner: Core) -> int:
    [row] = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    return row.answers


async def test_a_key_that_is_used_often_gets_one_event_with_a_count(inner: Core, clock: HandClock) -> None:
    keys = handlers_on(inner)
    key = await issue_one(keys, key_request())
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    for number in range(1000):
        clock.now = NOON + timedelta(milliseconds=number)
        recorder.add(use(key, *(["FAIRPLAY"] if number % 2 else ["WIDEVINE", "PLAYREADY"]), version="2.0" if number % 5 else "1"))
    assert await topics(inner) == ["content_key.issued"], "a response does not wait for it"
    await recorder.flush()
    await recorder.flush()
    assert await topics(inner) == ["content_key.issued", "content_key.delivered"]
    assert await recorded(inner, key) == Usage(
        1000, NOON, NOON + timedelta(milliseconds=999), ("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0")
    )
    [row] = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    assert (row.answers, row.first_answered_at, row.last_answered_at) == (1000, NOON, NOON + timedelta(milliseconds=999))
    assert (row.systems, row.speke_versions) == (("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0"))


async def test_a_use_has_the_transaction_id_of_its_request(inner: Core, clock: HandClock) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    recorder.add(use(key, transaction="t-7"))
    await recorder.flush()
    assert await inner.database.row(
        "SELECT metadata->>'actor', metadata->>'correlation_id' FROM events WHERE topic = 'content_key.delivered'"
    ) == ("studio", "t-7")


async def test_each_of_many_keys_gets_its_own_event(inner: Core, clock: HandClock) -> None:
    keys = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(300)))
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    for key in keys:
        recorder.add(use(key))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.delivered") == 300
    for key in (keys[0], keys[-1]):
        usage = await recorded(inner, key)
        assert usage is not None
        assert usage.count == 1


async def test_the_stream_of_a_key_that_is_used_all_day_grows_by_an_event_an_hour(inner: Core, clock: HandClock) -> None:
    """However many processes count, and the number that is shown is that of all uses all the time."""
    await issue_one(handlers_on(inner), key_request())
    [row] = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    recorders = [UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock) for _ in range(3)]
    uses = 0
    for _ in range(24):
        for _ in range(5):
            clock.forward(minutes=12)
            for recorder in recorders:
                recorder.add(use(row.id))
                uses += 1
                await recorder.flush()
                assert await shown(inner) == uses
        await let_an_hour_pass(inner)
    assert (await topics(inner)).count("content_key.delivered") == 24
    [row] = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    assert (row.answers, row.last_answered_at) == (360, clock.now)


async def test_a_batch_whose_acknowledgement_was_lost_is_added_once(inner: Core) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    counts, other = UsageCounts(inner.database), UsageCounts(inner.database)
    total = UsageTotal("studio", "t", Usage(3, NOON, NOON, ("WIDEVINE",), ("1",)))
    for batch in (1, 1, 2, 1):
        await counts.add(batch, {key.id: total})
    assert await shown(inner) == 6
    await other.add(1, {key.id: total})
    assert await shown(inner) == 9


@pytest.mark.parametrize("appended", [False, True])
async def test_the_batch_of_a_killed_process_is_recorded_once(inner: Core, other: Core, clock: HandClock, appended: bool) -> None:
    """The process dies before the event is written, or after it and before this is recorded."""
    key = await issue_one(handlers_on(inner), key_request())
    recorder, killed = (UsageRecorder(wired.executor, UsageCounts(wired.database), clock=clock) for wired in (inner, other))
    counts = UsageCounts(other.database)
    await counts.add(1, {key.id: UsageTotal("studio", "t", Usage(5, NOON, NOON, ("WIDEVINE",), ("1",)))})
    [taken] = await counts.take(10)
    if appended:
        assert await killed._record(taken) is None
    assert await shown(inner) == 5
    recorder.add(use(key, "FAIRPLAY"))
    await recorder.flush()
    assert await shown(inner) == 6
    await let_an_hour_pass(inner)
    await recorder.flush()
    usage = await recorded(inner, key)
    assert usage is not None
    assert (usage.count, await shown(inner), usage.systems) == (6, 6, ("FAIRPLAY", "WIDEVINE"))
    assert (await topics(inner)).count("content_key.delivered") == 1 + appended


async def test_recorders_that_flush_at_once_lose_and_double_nothing(inner: Core, other: Core, clock: HandClock) -> None:
    keys = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(30)))
    recorders = [UsageRecorder(wired.executor, UsageCounts(wired.database), clock=clock) for wired in (inner, other) * 3]
    for _ in range(5):
        for number, recorder in enumerate(recorders):
            for key in keys[number:] + keys[:number]:
                recorder.add(use(key))
        await asyncio.gather(*(recorder.flush() for recorder in recorders), let_an_hour_pass(inner))
    await let_an_hour_pass(inner)
    await recorders[0].flush()
    rows = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    assert {row.answers for row in rows} == {30}
    for key in keys:
        usage = await recorded(inner, key)
        assert usage is not None
        assert usage.count == 30


async def test_totals_of_two_processes_are_added(inner: Core, other: Core) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorders = [UsageRecorder(wired.executor, UsageCounts(wired.database), clock=wired.clock) for wired in (inner, other)]
    for _ in range(3):
        for recorder in recorders:
            recorder.add(use(key))
        await asyncio.gather(*(recorder.flush() for recorder in recorders))
    assert await shown(inner) == 6
    await let_an_hour_pass(inner)
    await asyncio.gather(*(recorder.flush() for recorder in recorders))
    usage = await recorded(inner, key)
    assert usage is not None
    assert usage.count == await shown(inner) == 6
    assert await topics(inner) == ["content_key.issued", "content_key.delivered", "content_key.delivered"]


async def test_it_records_at_intervals_and_at_a_stop(inner: Core, clock: HandClock) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock, every=0.01)
    await recorder.start()
    recorder.add(use(key))
    async with asyncio.timeout(60):
        while "content_key.delivered" not in await topics(inner):
            pass
    stopped = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock, every=3600)
    await stopped.start()
    for _ in range(3):
        stopped.add(use(key))
    await stopped.stop()
    await recorder.stop()
    assert await shown(inner) == 4
    assert await topics(inner) == ["content_key.issued", "content_key.delivered"]
    assert await inner.database.rows("SELECT FROM content_key_recorders") == []


async def test_half_full_it_records_before_the_interval_ends(inner: Core, clock: HandClock) -> None:
    keys = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(4)))
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock, every=3600, most=8)
    await recorder.start()
    for key in keys:
        recorder.add(use(key))
    async with asyncio.timeout(60):
        while (await topics(inner)).count("content_key.delivered") < 4:
            pass
    await recorder.stop()


async def test_uses_of_too_many_keys_are_counted_in_the_log(
    inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    keys = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(4)))
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock, most=2)
    for key in [*keys, *keys]:
        recorder.add(use(key))
    await recorder.flush()
    assert "4 uses of content keys were not recorded" in caplog.text
    assert (await topics(inner)).count("content_key.delivered") == 2
    recorder.add(use(keys[3]))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.delivered") == 3


async def test_nothing_is_lost_while_the_database_is_away(inner: Core, wire: Wire, clock: HandClock) -> None:
    keys = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(200)))
    far = core(wire.conninfo, role=None, clock=clock)
    await far.start()
    recorder = UsageRecorder(far.executor, UsageCounts(far.database), clock=clock)
    for key in keys:
        recorder.add(use(key, "WIDEVINE"))
    await wire.cut()
    with pytest.raises(Unavailable):
        await recorder.flush()
    recorder.add(use(keys[0], "FAIRPLAY"))
    await wire.mend()
    await until(lambda: not far.database.availability.lost)
    await recorder.flush()
    await recorder.flush()
    await far.stop()
    assert (await topics(inner)).count("content_key.delivered") == 200
    first = await recorded(inner, keys[0])
    assert first is not None
    assert (first.count, first.systems) == (2, ("FAIRPLAY", "WIDEVINE"))


async def test_a_use_that_is_refused_is_logged_once(inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    recorder.add(use(UUID(int=1)))
    await recorder.flush()
    await recorder.flush()
    assert caplog.text.count(f"the content key {UUID(int=1)} was not recorded") == 1


async def test_a_rebuilt_view_shows_the_same_usage(
    inner: Core, clock: HandClock, database_url: str, migrated: tuple[str, str | None]
) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    for _ in range(120):  # past a snapshot
        recorder.add(use(key))
        await recorder.flush()
        await let_an_hour_pass(inner)
    live = await table(inner.database, CONTENT_KEY_VIEW)
    await inner.executor.stop()
    usage = await recorded(inner, key)
    assert usage is not None
    assert usage.count == 120
    async with Database(database_url, size=4) as owner:
        streams = Streams(owner, EventMapper(inner.catalogue))
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(CONTENT_KEY_VIEW)
    assert await table(inner.database, CONTENT_KEY_VIEW) == live
