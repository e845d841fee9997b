"""Jobs are queued when their time comes: not before, and not twice, also when schedulers fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from psycopg.conninfo import make_conninfo
from pydantic import TypeAdapter

from api.kernel.wire import Instant
from api.wiring.core import core
from domain.job.values import JobState
from projections.job.due_jobs import AT_ONCE, DueJobs
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from tests.projections.job.jobs_made import update
from tests.projections.log.helpers import Wire, appenders, log_locked, rows, terminate
from tests.support.clock import HandClock
from tests.workers.consumed import log_reader
from tests.workers.job.scheduler.scheduling import Scheduling
from tests.workers.webhook.sender.sending import until
from workers.kernel.wakeups import Waker, WakeupHub

HOUR = 3600.0
instant = TypeAdapter(Instant).validate_python


async def test_a_due_job_is_queued_at_once_and_once(keeping: Scheduling) -> None:
    """Jobs that became due while no scheduler ran are queued, too."""
    await keeping.accept(1, within=0.001)
    await keeping.accept(2, within=HOUR)
    await keeping.accept(3)
    async with keeping.scheduler():
        await keeping.queued(1, 3)
    assert keeping.times_queued() == {1: 1}
    assert keeping.in_state(JobState.SCHEDULED) == [2]


async def test_a_job_is_queued_at_its_time_and_not_with_the_next_sweep(keeping: Scheduling) -> None:
    """The setting makes the sweep come once a minute; a test waits for 20 seconds."""
    await keeping.every(60)
    async with keeping.scheduler():
        await keeping.accept(1, within=2.2)
        await keeping.accept(2, within=1.6)
        await keeping.queued(1, 2)
    assert keeping.early() == []
    assert keeping.times_queued() == {1: 1, 2: 1}


async def test_a_changed_time_counts(keeping: Scheduling) -> None:
    for number, within in ((1, HOUR), (2, HOUR), (3, 30.0), (4, 2.0)):
        await keeping.accept(number, within=within)
    async with keeping.scheduler():
        await update(keeping.core, 1, run_at=keeping.clock.now + timedelta(seconds=2.5))
        await update(keeping.core, 2, run_at=keeping.clock.now - timedelta(days=1))
        await update(keeping.core, 3, run_at=keeping.clock.now + timedelta(hours=2))
        await keeping.queued(1, 2, 4)
    assert keeping.in_state(JobState.SCHEDULED) == [3]
    assert keeping.early() == []


async def test_the_log_wakes_the_scheduler(keeping: Scheduling) -> None:
    database = keeping.core.database
    log_watcher = LogWatcher(database)
    reader = log_reader(keeping.core, log_watcher)
    wake = WakeupHub(reader, ["job"])
    await log_watcher.start()
    await reader.start()
    async with keeping.scheduler(waker=wake.waker()):
        for number in range(1, 6):
            await keeping.accept(number, within=0.001)
            await keeping.queued(*range(1, number + 1))
    await reader.stop()
    await log_watcher.stop()


async def test_many_due_jobs_are_queued_in_several_rounds(keeping: Scheduling) -> None:
    count = AT_ONCE + 20
    for number in range(1, count + 1):
        await keeping.accept(number, within=0.001)
    async with keeping.scheduler():
        await keeping.queued(*range(1, count + 1))
    assert set(keeping.times_queued().values()) == {1}


class TestTimeZones:
    """A known fault: a run_at is taken for another zone's, or for another hour at a change of the clocks."""

    @pytest.mark.parametrize(
        ("sent", "meant"),
        [
            ("2031-03-30T02:30:00+01:00", "2031-03-30T01:30:00Z"),
            ("2031-03-30T03:30:00+02:00", "2031-03-30T01:30:00Z"),
            ("2031-10-26T02:30:00+02:00", "2031-10-26T00:30:00Z"),
            ("2031-10-26T02:30:00+01:00", "2031-10-26T01:30:00Z"),
            ("2031-03-30T02:30:00", "2031-03-30T02:30:00Z"),
            ("2031-01-01T00:00:00.000", "2031-01-01T00:00:00Z"),
            ("2031-01-01T05:45:00+05:45", "2031-01-01T00:00:00Z"),
            ("2030-12-31T15:00:00-09:00", "2031-01-01T00:00:00Z"),
        ],
    )
    async def test_a_time_with_an_offset_is_stored_as_its_moment(self, keeping: Scheduling, sent: str, meant: str) -> None:
        await keeping.accept(1, run_at=instant(sent))
        assert rows(keeping.url, "SELECT run_at FROM job_view") == [(datetime.fromisoformat(meant),)]

    @pytest.mark.parametrize("hours", [-12, -9, 5.75, 14])
    async def test_the_time_zone_of_the_machine_makes_no_difference(self, keeping: Scheduling, hours: float) -> None:
        elsewhere = timezone(timedelta(hours=hours))
        now = keeping.clock.now
        for number, moment in ((1, now + timedelta(milliseconds=1)), (2, now + timedelta(hours=1))):
            await keeping.accept(number, run_at=instant(moment.astimezone(elsewhere).isoformat()))
        async with keeping.scheduler():
            await keeping.queued(1)
        assert keeping.in_state(JobState.SCHEDULED) == [2]

    async def test_without_an_offset_it_is_utc(self, keeping: Scheduling) -> None:
        await keeping.accept(1, run_at=instant((keeping.clock.now + timedelta(seconds=2)).replace(tzinfo=None).isoformat()))
        async with keeping.scheduler():
            await keeping.queued(1)
        assert keeping.early() == []

    @pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "UTC"])
    async def test_the_time_zone_of_the_database_makes_no_difference(
        self, keeping: Scheduling, migrated: tuple[str, str | None], clock: HandClock, zone: str
    ) -> None:
        """The times are in hours that the clocks of the zone repeat or skip."""
        assert ZoneInfo(zone).key == zone
        moments = [
            "2025-10-26T00:30:00Z",
            "2025-10-26T01:30:00Z",
            "2025-03-30T01:30:00Z",
            "2025-11-02T05:30:00Z",
            "2025-11-02T06:30:00Z",
        ]
        clock.now = datetime(2025, 1, 1, tzinfo=UTC)
        for number, moment in enumerate(moments, start=1):
            await keeping.accept(number, run_at=instant(moment))
        there = core(make_conninfo(keeping.url, options=f"-c timezone={zone}"), role=migrated[1], clock=clock)
        await there.start()
        try:
            assert [due.run_at for due in await DueJobs(there.database).due(["studio"], {})] == sorted(map(instant, moments))
            async with keeping.scheduler(core=there):
                await keeping.queued(1, 2, 3, 4, 5)
        finally:
            await there.stop()


class TestSchedules:
    async def test_an_inactive_schedule_stops_only_its_client(self, keeping: Scheduling) -> None:
        await keeping.switch(active=False)
        await keeping.accept(1, within=0.001)
        await keeping.accept(2, within=0.001, client="other")
        async with keeping.scheduler():
            await keeping.queued(2)
            await keeping.accept(3, within=0.001, client="other")
            await keeping.queued(2, 3)
            assert keeping.in_state(JobState.SCHEDULED) == [1]
            await keeping.switch(active=True)
            await keeping.queued(1, 2, 3)

    async def test_switched_off_it_stops_the_timer_too(self, keeping: Scheduling) -> None:
        async with keeping.scheduler():
            await keeping.accept(1, within=6.0)
            await keeping.switch(active=False)
            await keeping.accept(2, within=6.5, client="other")
            await keeping.queued(2)
            assert keeping.in_state(JobState.SCHEDULED) == [1]


class TestSeveral:
    async def test_two_queue_a_job_once(self, keeping: Scheduling) -> None:
        async with keeping.scheduler(), keeping.scheduler():
            for number in range(1, 31):
                await keeping.accept(number, within=0.001)
            await keeping.queued(*range(1, 31))
        assert set(keeping.times_queued().values()) == {1}

    async def test_both_are_seen_and_leave_in_order(self, keeping: Scheduling) -> None:
        async with keeping.scheduler():
            async with keeping.scheduler():
                await until(lambda: keeping.seen() == 2)
            await until(lambda: keeping.seen() == 1)
        assert keeping.seen() == 0

    async def test_when_the_first_ends_the_second_goes_on_at_once(self, keeping: Scheduling) -> None:
        """The second continues without waiting for the lease, which is longer than a test waits."""
        first = keeping.scheduler(lease=90.0)
        await first.__aenter__()
        await until(lambda: keeping.seen() == 1)
        async with keeping.scheduler(lease=1.0):
            await first.__aexit__(None, None, None)
            await keeping.accept(1, within=0.001)
            await keeping.queued(1)

    async def test_a_scheduler_that_is_killed_before_it_wrote_loses_nothing(
        self, keeping: Scheduling, migrated: tuple[str, str | None], clock: HandClock
    ) -> None:
        """The scheduler has found a job, and its append is under way when it is killed; another one takes over the lease."""
        async with Wire(keeping.url) as wire:
            doomed = core(wire.conninfo, role=migrated[1], clock=clock)
            await doomed.start()
            try:
                await keeping.accept(1, within=2.0)
                async with keeping.scheduler(core=doomed, lease=1.0):
                    async with log_locked(keeping.url):
                        await until(lambda: appenders(keeping.url, waiting=True))
                        reached = appenders(keeping.url, waiting=True)
                        await wire.cut()
                        terminate(keeping.url, reached)
                    assert keeping.in_state(JobState.SCHEDULED) == [1]
                    async with keeping.scheduler(lease=1.0):
                        await keeping.queued(1)
                    await wire.mend()
            finally:
                await doomed.stop()
        assert keeping.times_queued() == {1: 1}


async def test_while_the_database_is_gone_it_waits_and_then_goes_on(
    keeping: Scheduling, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    async with Wire(keeping.url) as wire:
        cut_off = core(wire.conninfo, role=migrated[1], clock=clock)
        await cut_off.start()
        try:
            async with keeping.scheduler(core=cut_off, lease=1.0):
                await keeping.accept(1, within=0.001)
                await keeping.queued(1)
                await wire.cut()
                await keeping.accept(2, within=0.001)
                await keeping.accept(3, within=1.0)
                async with Database(keeping.url, size=1) as database:
                    await until(lambda: _gone(database))
                assert keeping.in_state(JobState.QUEUED) == [1]
                await wire.mend()
                await keeping.queued(1, 2, 3)
        finally:
            await cut_off.stop()
    assert keeping.times_queued() == {1: 1, 2: 1, 3: 1}


async def _gone(database: Database) -> bool:
    """Return True if the lease has expired."""
    return bool(await database.rows("SELECT FROM consumer_shards WHERE held_until < clock_timestamp()"))


async def test_it_stops_while_it_sleeps(keeping: Scheduling) -> None:
    await keeping.accept(1, within=HOUR)
    waker = Waker()
    async with keeping.scheduler(waker=waker):
        await until(lambda: keeping.seen() == 1)
    assert keeping.seen() == 0
    assert keeping.in_state(JobState.SCHEDULED) == [1]
