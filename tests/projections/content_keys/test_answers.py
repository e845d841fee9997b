"""What was answered is recorded behind the answer: one event per key and flush, nothing lost at a stop. Issue 6, points 6 and 9."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from api.core import Core, core
from domain.content_key.aggregate import Answers, ContentKey
from domain.kernel.mapper import EventMapper
from projections.content_keys.answers import Answered, AnswerRecorder
from projections.content_keys.store import KeyGiven
from projections.content_keys.view import CONTENT_KEY_VIEW
from projections.kernel.database import Database
from projections.kernel.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.conftest import NOON, HandClock
from tests.projections.content_keys.keys_given import asked, given, keys_on, one, topics
from tests.projections.feeding import table
from tests.projections.log.helpers import Wire


def answer(key: KeyGiven | UUID, *systems: str, version: str = "1", transaction: str = "t-1") -> Answered:
    return Answered(key if isinstance(key, UUID) else key.id, "studio", systems or ("WIDEVINE",), version, transaction)


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Wire]:
    async with Wire(database_url) as between:
        yield between


async def recorded(inner: Core, key: KeyGiven) -> Answers | None:
    [root] = (await inner.streams.load.many([ContentKey.stream(key.id)])).values()
    assert isinstance(root, ContentKey)
    return root.answers


async def test_a_hot_key_makes_one_event_with_a_count(inner: Core, clock: HandClock) -> None:
    keys = keys_on(inner)
    key = await one(keys, asked())
    recorder = AnswerRecorder(inner.ledger, clock)
    for number in range(1000):
        clock.now = NOON + timedelta(milliseconds=number)
        recorder.add(
            answer(key, *(["FAIRPLAY"] if number % 2 else ["WIDEVINE", "PLAYREADY"]), version="2.0" if number % 5 else "1")
        )
    assert await topics(inner) == ["content_key.issued"], "an answer waits for nothing"
    await recorder.flush()
    await recorder.flush()
    assert await topics(inner) == ["content_key.issued", "content_key.answered"]
    assert await recorded(inner, key) == Answers(
        1000, NOON, NOON + timedelta(milliseconds=999), ("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0")
    )
    [row] = (await keys.of_content("movie-1")).results
    assert (row.answers, row.first_answered_at, row.last_answered_at) == (1000, NOON, NOON + timedelta(milliseconds=999))
    assert (row.systems, row.speke_versions) == (("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0"))


async def test_an_answer_is_found_under_the_transaction_of_its_request(inner: Core, clock: HandClock) -> None:
    key = await one(keys_on(inner), asked())
    recorder = AnswerRecorder(inner.ledger, clock)
    recorder.add(answer(key, transaction="t-7"))
    await recorder.flush()
    assert await inner.database.row(
        "SELECT metadata->>'actor', metadata->>'correlation_id' FROM events WHERE topic = 'content_key.answered'"
    ) == ("studio", "t-7")


async def test_many_keys_are_recorded_each_by_itself(inner: Core, clock: HandClock) -> None:
    found = await given(keys_on(inner), *(asked(period=str(number)) for number in range(300)))
    recorder = AnswerRecorder(inner.ledger, clock)
    for key in found:
        recorder.add(answer(key))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.answered") == 300
    for key in (found[0], found[-1]):
        answers = await recorded(inner, key)
        assert answers is not None
        assert answers.count == 1


async def test_totals_of_two_processes_add_up(inner: Core, other: Core) -> None:
    key = await one(keys_on(inner), asked())
    recorders = [AnswerRecorder(wired.ledger, wired.clock) for wired in (inner, other)]
    for _ in range(3):
        for recorder in recorders:
            recorder.add(answer(key))
        await asyncio.gather(*(recorder.flush() for recorder in recorders))
    answers = await recorded(inner, key)
    assert answers is not None
    assert answers.count == 6


async def test_it_records_by_itself_and_what_is_left_at_a_stop(inner: Core, clock: HandClock) -> None:
    key = await one(keys_on(inner), asked())
    recorder = AnswerRecorder(inner.ledger, clock, every=0.01)
    await recorder.start()
    recorder.add(answer(key))
    async with asyncio.timeout(10):
        while "content_key.answered" not in await topics(inner):
            pass
    keys = keys_on(inner)
    await keys.start()
    for _ in range(3):
        keys.answered(answer(key))
    await keys.stop()
    await recorder.stop()
    answers = await recorded(inner, key)
    assert answers is not None
    assert answers.count == 4


async def test_half_full_it_does_not_wait_for_its_time(inner: Core, clock: HandClock) -> None:
    found = await given(keys_on(inner), *(asked(period=str(number)) for number in range(4)))
    recorder = AnswerRecorder(inner.ledger, clock, every=3600, most=8)
    await recorder.start()
    for key in found:
        recorder.add(answer(key))
    async with asyncio.timeout(10):
        while (await topics(inner)).count("content_key.answered") < 4:
            pass
    await recorder.stop()


async def test_more_keys_than_there_is_room_for_are_told_in_the_log(
    inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    found = await given(keys_on(inner), *(asked(period=str(number)) for number in range(4)))
    recorder = AnswerRecorder(inner.ledger, clock, most=2)
    for key in [*found, *found]:
        recorder.add(answer(key))
    await recorder.flush()
    assert "4 answers with content keys were not recorded" in caplog.text
    assert (await topics(inner)).count("content_key.answered") == 2
    recorder.add(answer(found[3]))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.answered") == 3


async def test_a_database_that_is_away_loses_nothing(inner: Core, wire: Wire, clock: HandClock) -> None:
    found = await given(keys_on(inner), *(asked(period=str(number)) for number in range(200)))
    far = core(wire.conninfo, role=None, clock=clock)
    await far.start()
    recorder = AnswerRecorder(far.ledger, clock)
    for key in found:
        recorder.add(answer(key, "WIDEVINE"))
    await wire.cut()
    await recorder.flush()
    recorder.add(answer(found[0], "FAIRPLAY"))
    await wire.mend()
    await recorder.flush()
    await recorder.flush()
    await far.stop()
    assert (await topics(inner)).count("content_key.answered") == 200
    first = await recorded(inner, found[0])
    assert first is not None
    assert (first.count, first.systems) == (2, ("FAIRPLAY", "WIDEVINE"))


async def test_what_can_never_be_recorded_is_told_and_left(inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    recorder = AnswerRecorder(inner.ledger, clock)
    recorder.add(answer(UUID(int=1)))
    await recorder.flush()
    await recorder.flush()
    assert caplog.text.count(f"the content key {UUID(int=1)} were not recorded") == 1


async def test_a_rebuilt_view_shows_the_same_answers(
    inner: Core, clock: HandClock, database_url: str, migrated: tuple[str, str | None]
) -> None:
    key = await one(keys_on(inner), asked())
    recorder = AnswerRecorder(inner.ledger, clock)
    for _ in range(120):  # past a snapshot
        recorder.add(answer(key))
        await recorder.flush()
    live = await table(inner.database, CONTENT_KEY_VIEW)
    await inner.ledger.stop()
    answers = await recorded(inner, key)
    assert answers is not None
    assert answers.count == 120
    async with Database(database_url, size=4) as owner:
        streams = Streams(owner, EventMapper(inner.catalogue))
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(CONTENT_KEY_VIEW)
    assert await table(inner.database, CONTENT_KEY_VIEW) == live
