"""Events start and stop at their time: not before, not twice, and even if timekeepers fail."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo

from api.wiring.core import core
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.kernel.command import Command
from domain.kernel.ports import Invocation
from projections.event.due_events import AT_ONCE, DueEvent, DueEvents
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.log_watcher import LogWatcher
from tests.projections.log.helpers import Wire, appenders, log_locked, rows, terminate
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.workers.consumed import log_reader
from tests.workers.event.timekeeper.keeping import Keeping
from tests.workers.webhook.sender.sending import until
from workers.event.timekeeper import CHANGES_TIMES, Rests
from workers.kernel.wakeups import POLL, Waker, WakeupHub

PRE_LIVE, UNPUBLISHED, PUBLISHED = EventState.PRE_LIVE, EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED
STOPPED = EventState.STOPPED
HOUR = 3600.0
_LEASE_ENDS = "UPDATE consumer_shards SET held_until = '-infinity' WHERE consumer = 'timekeeper' RETURNING shard"


async def test_what_was_missed_is_done_at_once(keeping: Keeping) -> None:
    await keeping.plan(1, start=-HOUR)
    await keeping.plan(2, start=-HOUR, end=HOUR, auto_publish=True)
    await keeping.plan(3, start=-2 * HOUR, end=-HOUR, state=UNPUBLISHED)
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, 1)
        await keeping.reached(PUBLISHED, 2)
        await keeping.reached(STOPPED, 3)
    assert sorted(keeping.scheduled()) == [(1, UNPUBLISHED), (2, PUBLISHED), (3, STOPPED)]


async def test_what_is_not_due_stays_as_it_is(keeping: Keeping) -> None:
    """The last Event is due, so the others were examined."""
    await keeping.plan(1, start=-2 * HOUR, end=-HOUR)
    await keeping.plan(2, start=-HOUR, auto_start=False, auto_publish=True)
    await keeping.plan(3, start=HOUR)
    await keeping.plan(4, start=-2 * HOUR, end=-HOUR, state=UNPUBLISHED, auto_end=False)
    await keeping.plan(5, start=-HOUR, state=EventState.SUSPENDED)
    await do(keeping.core, MediaEvent.delete.on(await keeping.plan(6, start=-HOUR)))
    await do(
        keeping.core,
        MediaEvent.change_state.on(await keeping.plan(7, start=-2 * HOUR, end=-HOUR), UNPUBLISHED, trigger=Trigger.OPERATOR),
    )
    before = keeping.states()
    await keeping.plan(8, start=-1)
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, 4, 7, 8)
    assert keeping.states() == {**before, 8: UNPUBLISHED}
    assert keeping.scheduled() == [(8, UNPUBLISHED)]


async def test_it_publishes_and_withdraws_by_the_availability_window(keeping: Keeping) -> None:
    """The windows of 1 and 2 were missed; that of 4 opens and closes while the timekeeper runs."""
    for number, start, end in ((1, -HOUR, HOUR), (2, -2 * HOUR, -HOUR), (3, HOUR, None), (4, 2.5, 5)):
        times: dict[str, Any] = {"published_start": keeping.seconds(start), "published_end": keeping.seconds(end)}
        await keeping.plan(number, state=EventState.VOD_PRIVATE, **times)
    await keeping.plan(5, state=EventState.VOD_PUBLIC, published_end=keeping.seconds(HOUR))
    await keeping.plan(6, state=UNPUBLISHED, published_start=keeping.seconds(-1))
    async with keeping.timekeeper():
        await keeping.change(5, published_end=keeping.seconds(-HOUR))
        await keeping.reached(PUBLISHED, 6)
        await until(lambda: (4, EventState.VOD_PRIVATE) in keeping.scheduled(), what="the end of the window")
        await keeping.reached(EventState.VOD_PUBLIC, 1)
        await keeping.reached(EventState.VOD_PRIVATE, 2, 3, 4, 5)
    assert [change for change in keeping.scheduled() if change[0] == 4] == [(4, EventState.VOD_PUBLIC), (4, EventState.VOD_PRIVATE)]
    assert len(keeping.scheduled()) == 5


async def test_it_shows_and_hides_the_recorded_stream(keeping: Keeping) -> None:
    """The recording of 1 is shown at the stop, because its time has come, and hidden two seconds later."""
    await keeping.plan(1, state=UNPUBLISHED, instant_vod_start=keeping.seconds(-HOUR), instant_vod_end=keeping.seconds(4))
    await keeping.plan(2, state=UNPUBLISHED, instant_vod_start=keeping.seconds(HOUR))
    keeping.clock.forward(seconds=1)
    async with keeping.timekeeper():
        await keeping.stop(1)
        await keeping.stop(2)
        await keeping.reached(EventState.INSTANT_VOD, 1)
        await keeping.reached(EventState.INSTANT_VOD_DELETE, 1)
    assert keeping.in_state(STOPPED) == [2]
    assert keeping.scheduled() == [(1, EventState.INSTANT_VOD), (1, EventState.INSTANT_VOD_DELETE)]


async def test_it_starts_at_its_time_and_stops_at_its_time(keeping: Keeping) -> None:
    async with keeping.timekeeper():
        await keeping.plan(1, start=4, end=8)
        await keeping.plan(2, start=2.7)
        await keeping.reached(STOPPED, 1)
        await keeping.reached(UNPUBLISHED, 2)
    assert keeping.scheduled() == [(2, UNPUBLISHED), (1, UNPUBLISHED), (1, STOPPED)]
    assert keeping.early() == []


async def test_the_times_of_the_last_change_count(keeping: Keeping) -> None:
    for number, start in ((1, HOUR), (2, HOUR), (3, 30), (4, 2.5)):
        await keeping.plan(number, start=start)
    async with keeping.timekeeper():
        await keeping.change(1, scheduled_start=keeping.seconds(2.6))
        await keeping.change(2, scheduled_start=keeping.seconds(-HOUR))
        await keeping.change(3, scheduled_start=keeping.seconds(HOUR))
        await keeping.reached(UNPUBLISHED, 1, 2, 4)
    assert keeping.in_state(PRE_LIVE) == [3]
    assert keeping.early() == []


async def test_a_new_start_starts_again_an_event_that_is_pre_live_again(keeping: Keeping) -> None:
    await keeping.plan(1, start=-2, end=HOUR)
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, 1)
        await keeping.change(1, state=PRE_LIVE)
        await keeping.plan(2, start=-1)
        await keeping.reached(UNPUBLISHED, 2)
        await keeping.change(1, scheduled_start=keeping.seconds(-1))
        await keeping.reached(UNPUBLISHED, 1, 2)
    assert keeping.scheduled() == [(1, UNPUBLISHED), (2, UNPUBLISHED), (1, UNPUBLISHED)]


async def test_whether_publications_are_to_start_is_known_as_it_was_at_going_live(keeping: Keeping) -> None:
    """A follower of the log reads the Event as of that event, even if the flags were changed before it got there."""
    await keeping.plan(1, start=-1, auto_start_publications=True)
    await keeping.plan(2, start=-1)
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, 1, 2)
    await keeping.change(1, auto_start_publications=False)
    await keeping.change(2, auto_start_publications=True)
    result = rows(keeping.url, "SELECT originator_id, position FROM events WHERE topic = 'event.state_changed'")
    message = {}
    for stream, position in result:
        [event] = (await keeping.core.streams.as_of({stream}, position)).values()
        assert isinstance(event, MediaEvent)
        message[UUID(event.key).int] = (event.details.state, event.details.auto_start_publications)
    assert message == {1: (UNPUBLISHED, True), 2: (UNPUBLISHED, False)}


class OnlyWoken(Waker):
    """A waker without polls."""

    async def sleep(self, seconds: float = POLL) -> bool:
        return await super().sleep(HOUR)


async def test_the_log_wakes_the_timekeeper(keeping: Keeping) -> None:
    log_watcher = LogWatcher(keeping.core.database)
    reader = log_reader(keeping.core, log_watcher)
    waker = OnlyWoken()
    WakeupHub(reader, CHANGES_TIMES).add(waker)
    await log_watcher.start()
    await reader.start()
    async with keeping.timekeeper(waker=waker):
        for number in range(1, 6):
            await keeping.plan(number, start=-1)
            await keeping.reached(UNPUBLISHED, *range(1, number + 1))
        await keeping.plan(6, start=HOUR)
        await keeping.change(6, scheduled_start=keeping.seconds(-1))
        await keeping.plan(7, start=-1, auto_start=False)
        await keeping.change(7, auto_start=True)
        await keeping.plan(8, start=-1, state=STOPPED)
        await keeping.change(8, state=PRE_LIVE)
        await keeping.reached(UNPUBLISHED, *range(1, 9))
        await keeping.change(8, scheduled_end=keeping.seconds(-1))
        await keeping.reached(STOPPED, 8)
    await reader.stop()
    await log_watcher.stop()


async def test_many_are_started_in_several_rounds_of_few_appends(keeping: Keeping) -> None:
    count = 2 * AT_ONCE + 20
    for number in range(1, count + 1):
        await keeping.plan(number, start=-number)
    [(before,)] = rows(keeping.url, "SELECT count(*) FROM commits")
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, *range(1, count + 1))
    [(after,)] = rows(keeping.url, "SELECT count(*) FROM commits")
    assert after - before < count / 4
    started = [number for number, _ in keeping.scheduled()]
    assert len(started) == count
    assert set(started[:AT_ONCE]) == set(range(count - AT_ONCE + 1, count + 1)), "the longest due first"


class HandDue(DueEvents):
    """A query that compares with the time that a test sets, as if the clock of the database had been set."""

    def __init__(self, database: Database, now: datetime) -> None:
        super().__init__(database)
        self.now = now
        self.rounds = 0

    async def due(self, *, resting: Collection[str] = (), at: datetime | None = None) -> list[DueEvent]:
        self.rounds += 1
        return await super().due(resting=resting, at=self.now)

    async def next_in(self, *, at: datetime | None = None) -> float | None:
        return await super().next_in(at=self.now)

    async def looked(self) -> None:
        """Query at the time that is set now."""
        since = self.rounds
        await until(lambda: self.rounds > since + 1)


async def test_a_clock_that_jumps_ahead_and_back_starts_nothing_twice(keeping: Keeping) -> None:
    now, hour = keeping.clock.now, timedelta(hours=1)
    await keeping.plan(1, start=HOUR, end=3 * HOUR)
    await keeping.plan(2, start=HOUR)
    await keeping.plan(3, start=-HOUR, end=HOUR)
    await keeping.plan(4, start=5 * HOUR)
    due = HandDue(keeping.core.database, now)
    async with keeping.timekeeper(due=due):
        await keeping.reached(UNPUBLISHED, 3)
        due.now = now + 2 * hour
        await keeping.reached(UNPUBLISHED, 1, 2)
        await keeping.reached(STOPPED, 3)
        due.now = now - 2 * hour
        await due.looked()
        for number in (1, 3):
            await keeping.change(number, state=PRE_LIVE)
        due.now = now + 2 * hour
        await due.looked()
        assert keeping.in_state(PRE_LIVE) == [1, 3, 4]
        due.now = now + 4 * hour
        await due.looked()
    assert sorted(keeping.scheduled()) == [(1, UNPUBLISHED), (2, UNPUBLISHED), (3, UNPUBLISHED), (3, STOPPED)]


async def test_how_late_it_was_is_measured(keeping: Keeping) -> None:
    await keeping.plan(1, start=-100, end=HOUR)
    await keeping.plan(2, start=-HOUR, end=-100, state=UNPUBLISHED)
    async with keeping.timekeeper():
        await keeping.reached(UNPUBLISHED, 1)
        await keeping.reached(STOPPED, 2)
    for action in ("start", "stop"):
        result = keeping.registry.get_sample_value("medialedger_timekeeper_late_seconds_sum", {"action": action})
        assert result is not None
        assert 100 < result < 600


class Broken(CommandExecutor):
    """An executor that fails for some Events, as if their streams held something that this build cannot read."""

    def __init__(self, inner: CommandExecutor, broken: set[int]) -> None:
        self._inner = inner
        self.broken = broken
        self.tries = 0

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Any:
        commands = [wanted] if isinstance(wanted, Command) else (await wanted()).commands
        if any(UUID(str(command.key)).int in self.broken for command in commands):
            self.tries += 1
            raise ValueError("cannot be read")
        return await self._inner.execute(wanted, invocation=invocation)


class TestBroken:
    async def test_broken_events_keep_no_others_from_their_start(self, keeping: Keeping, caplog: pytest.LogCaptureFixture) -> None:
        """There are more of them than are read in one round, and they have been due the longest."""
        count = AT_ONCE + 5
        for number in range(1, count + 1):
            await keeping.plan(number, start=-HOUR)
        await keeping.plan(1000, start=-1)
        executor = Broken(keeping.core.executor, set(range(1, count + 1)))
        with caplog.at_level(logging.ERROR, "workers.timekeeper"):
            async with keeping.timekeeper(executor=executor):
                await keeping.reached(UNPUBLISHED, 1000)
                executor.broken.clear()
                await keeping.reached(UNPUBLISHED, *range(1, count + 1), 1000)
        assert len(keeping.scheduled()) == count + 1
        assert f"the schedule could not start the Event {UUID(int=1)}; trying again in 1 s" in caplog.text

    def test_each_try_waits_longer_than_the_last(self) -> None:
        rests, key = Rests(), "start 1 1"
        seconds = [rests.begin(key) for _ in range(12)]
        assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
        assert rests.present() == [key]
        assert rests.begin("start 2 1") == 1


class TestSeveral:
    async def test_two_start_an_event_once(self, keeping: Keeping) -> None:
        async with keeping.timekeeper(), keeping.timekeeper():
            for number in range(1, 31):
                await keeping.plan(number, start=-1)
            await keeping.reached(UNPUBLISHED, *range(1, 31))
        assert sorted(number for number, _ in keeping.scheduled()) == list(range(1, 31))

    async def test_two_that_both_think_they_are_active_start_an_event_once(
        self, keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock
    ) -> None:
        """This happens if one was frozen until after its lease. Each has found all Events before the other has written any."""
        for number in range(1, 31):
            await keeping.plan(number, start=-HOUR, end=HOUR)
        other = core(keeping.url, role=migrated[1], clock=clock)
        await other.start()
        try:
            async with AsyncExitStack() as both:
                async with log_locked(keeping.url):
                    await both.enter_async_context(keeping.timekeeper())
                    await until(lambda: len(appenders(keeping.url, waiting=True)) == 1)
                    rows(keeping.url, _LEASE_ENDS)
                    await both.enter_async_context(keeping.timekeeper(core=other))
                    await until(lambda: len(appenders(keeping.url, waiting=True)) == 2)
                await keeping.reached(UNPUBLISHED, *range(1, 31))
        finally:
            await other.stop()
        assert sorted(number for number, _ in keeping.scheduled()) == list(range(1, 31))

    async def test_when_the_first_ends_the_second_goes_on_at_once(self, keeping: Keeping) -> None:
        """The second does not wait for the lease, which is longer than the time limit of the test."""
        first = keeping.timekeeper(lease=900.0)
        await first.__aenter__()
        await until(lambda: keeping.members() == 1)
        async with keeping.timekeeper(lease=1.0):
            await first.__aexit__(None, None, None)
            await keeping.plan(1, start=-1)
            await keeping.reached(UNPUBLISHED, 1)
        assert keeping.members() == 0

    async def test_one_that_is_killed_before_it_wrote_loses_nothing(
        self, keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock
    ) -> None:
        """The timekeeper has found an Event, and its append is in progress when it is killed; another takes over the lease."""
        async with Wire(keeping.url) as wire:
            doomed = core(wire.conninfo, role=migrated[1], clock=clock)
            await doomed.start()
            try:
                await keeping.plan(1, start=-1)
                async with AsyncExitStack() as first:
                    async with log_locked(keeping.url):
                        await first.enter_async_context(keeping.timekeeper(core=doomed, lease=1.0))
                        await until(lambda: appenders(keeping.url, waiting=True))
                        result = appenders(keeping.url, waiting=True)
                        await wire.cut()
                        terminate(keeping.url, result)
                    assert keeping.in_state(PRE_LIVE) == [1]
                    async with keeping.timekeeper(lease=1.0):
                        await keeping.reached(UNPUBLISHED, 1)
                    await wire.mend()
            finally:
                await doomed.stop()
        assert keeping.scheduled() == [(1, UNPUBLISHED)]


async def test_while_the_database_is_gone_it_waits_and_then_goes_on(
    keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    async with Wire(keeping.url) as wire:
        cut_off = core(wire.conninfo, role=migrated[1], clock=clock)
        await cut_off.start()
        try:
            async with keeping.timekeeper(core=cut_off, lease=1.0):
                await keeping.plan(1, start=-1)
                await keeping.reached(UNPUBLISHED, 1)
                await wire.cut()
                await keeping.plan(2, start=-1)
                await keeping.plan(3, start=3.0)
                async with Database(keeping.url, size=1) as database:
                    await until(lambda: _gone(database))
                assert keeping.in_state(UNPUBLISHED) == [1]
                await wire.mend()
                await keeping.reached(UNPUBLISHED, 1, 2, 3)
        finally:
            await cut_off.stop()
    assert sorted(keeping.scheduled()) == [(1, UNPUBLISHED), (2, UNPUBLISHED), (3, UNPUBLISHED)]


async def test_it_stops_while_it_sleeps(keeping: Keeping) -> None:
    await keeping.plan(1, start=HOUR)
    async with keeping.timekeeper():
        await until(lambda: keeping.members() == 1)
    assert keeping.members() == 0
    assert keeping.in_state(PRE_LIVE) == [1]


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "UTC"])
async def test_the_time_zone_of_the_database_makes_no_difference(
    keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock, zone: str
) -> None:
    """The times are in hours that local clocks repeat or skip."""
    moments = ["2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z", "2025-03-30T01:30:00Z", "2025-11-02T05:30:00Z"]
    for number, moment in enumerate(moments, start=1):
        start = datetime.fromisoformat(moment)
        await keeping.plan(number, scheduled_start=start, scheduled_end=start + timedelta(days=9999))
    there = core(make_conninfo(keeping.url, options=f"-c timezone={zone}"), role=migrated[1], clock=clock)
    await there.start()
    try:
        async with keeping.timekeeper(core=there):
            await keeping.reached(UNPUBLISHED, 1, 2, 3, 4)
    finally:
        await there.stop()


async def _gone(database: Database) -> bool:
    """Let the lease expire."""
    return bool(await database.rows("SELECT FROM consumer_shards WHERE held_until < clock_timestamp()"))


class TestFreeChannels:
    """Events that wait for a channel take it as soon as it is free."""

    async def test_the_event_with_the_latest_scheduled_start_takes_it(self, keeping: Keeping) -> None:
        for number, start in ((1, -3 * HOUR), (2, -2 * HOUR), (3, -HOUR)):
            await keeping.plan(number, start=start, auto_start=False, channel_id=await keeping.channel())
            await keeping.start(number)
        assert keeping.on_air() == [1]
        async with keeping.timekeeper():
            await keeping.stop(1)
            await until(lambda: keeping.on_air() == [3], what="the third Event is on the air")
            await keeping.stop(3)
            await until(lambda: keeping.on_air() == [2], what="the second Event is on the air")

    async def test_it_does_not_take_it_after_its_end(self, keeping: Keeping) -> None:
        """The second Event is over; the third one is due, so the second one was examined."""
        channel = await keeping.channel()
        await keeping.plan(1, channel_id=channel)
        await keeping.plan(2, end=HOUR, auto_end=False, channel_id=channel)
        for number in (1, 2):
            await keeping.start(number)
        await keeping.change(2, scheduled_end=keeping.seconds(-1))
        await keeping.stop(1)
        await keeping.plan(3, start=-1)
        async with keeping.timekeeper():
            await keeping.reached(UNPUBLISHED, 2, 3)
        assert keeping.on_air() == []

    async def test_the_schedule_starts_an_event_whose_channel_is_in_use(self, keeping: Keeping) -> None:
        channel = await keeping.channel()
        await keeping.plan(1, channel_id=channel)
        await keeping.start(1)
        await keeping.plan(2, start=-1, end=HOUR, channel_id=channel)
        async with keeping.timekeeper():
            await keeping.reached(UNPUBLISHED, 1, 2)
            assert keeping.on_air() == [1]
            await keeping.stop(1)
            await until(lambda: keeping.on_air() == [2], what="the second Event is on the air")
        [(message,)] = rows(keeping.url, "SELECT message FROM logbook")
        assert message.startswith(f"the encoder was not started: the Event {UUID(int=1)} (")
