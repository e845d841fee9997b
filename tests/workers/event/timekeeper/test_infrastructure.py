"""Infrastructure is provisioned and terminated at its time: not before, once for each time, and even if timekeepers fail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import core
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.values import ProvisionState
from tests.projections.log.helpers import Wire, appenders, log_locked, rows, terminate
from tests.support.clock import HandClock
from tests.workers.event.timekeeper.keeping import Keeping
from tests.workers.event.timekeeper.test_timekeeper import HandDue
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.provisioned import Provisioning, reconciling
from tests.workers.webhook.sender.sending import until
from workers.event.timekeeper import Rests
from workers.kernel.wakeups import Waker

HOUR = 3600.0
UP, GONE, ASKED = ProvisionState.PROVISIONED, ProvisionState.TERMINATED, ProvisionState.PROVISIONING
_LEASE_ENDS = "UPDATE consumer_shards SET held_until = '-infinity' WHERE consumer = 'timekeeper' RETURNING shard"


class Planned:
    """Events with infrastructure of one profile, whose times are so many seconds from now."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.provisioning = Provisioning(keeping.core)

    async def event(self, number: int, *, provision: float | None = None, end: float | None = None, **more: Any) -> UUID:
        """Create an Event. `end` is that of its infrastructure."""
        if "infrastructure_profile_id" not in more:
            more["infrastructure_profile_id"] = await self.provisioning.profile("origin-1", deployment="static")
        plan = {"scheduled_provision_at": self.keeping.seconds(provision), "scheduled_terminate_at": self.keeping.seconds(end)}
        flags = {"auto_provision_infrastructure": True, "auto_terminate_infrastructure": True}
        fields: dict[str, Any] = {**flags, **plan, **more}
        return await self.keeping.plan(number, **fields)

    async def reached(self, topic: str, *numbers: int) -> None:
        await until(lambda: sorted(self.asked(topic)) == sorted(numbers), what=f"{topic} {numbers}")

    def asked(self, topic: str) -> list[int]:
        """Return the Events whose infrastructure got such an event, in the order of the log."""
        by_stream = {ProvisionInfo.stream(provision_key(UUID(int=number))): number for number in range(1, 31)}
        result = rows(self.keeping.url, f"SELECT originator_id FROM events WHERE topic = 'provision.{topic}' ORDER BY position")
        return [by_stream[stream] for (stream,) in result]

    def counted(self, topic: str) -> int:
        [(count,)] = rows(self.keeping.url, f"SELECT count(*) FROM events WHERE topic = '{topic}'")
        return int(count)


async def test_it_appears_before_the_event_and_goes_after_it(keeping: Keeping) -> None:
    planned = Planned(keeping)
    async with keeping.timekeeper(), reconciling(keeping.core, MemoryProvisioner()):
        event = await planned.event(1, provision=1.5, end=HOUR)
        await planned.reached("requested", 1)
        info = await planned.provisioning.until(event, UP)
        assert info.client == "system"
        end = keeping.seconds(2.0)
        await keeping.change(1, scheduled_terminate_at=end)
        await planned.provisioning.until(event, GONE)
    times: list[tuple[str, datetime]] = rows(
        keeping.url, "SELECT topic, recorded_at FROM events WHERE topic LIKE 'provision.%%' ORDER BY position"
    )
    at = dict(times)
    assert [topic for topic, _ in times] == [
        f"provision.{verb}" for verb in ("opened", "requested", "provisioned", "termination_requested", "terminated")
    ]
    assert at["provision.requested"] >= (keeping.seconds(1.5) or keeping.clock.now)
    assert end is not None
    assert at["provision.termination_requested"] >= end


async def test_what_was_missed_is_done_at_once_and_what_is_too_late_is_not(keeping: Keeping) -> None:
    planned = Planned(keeping)
    await planned.event(1, provision=-HOUR)
    await planned.event(2, provision=-HOUR, end=HOUR)
    await planned.event(3, provision=-2 * HOUR, end=-HOUR)
    await planned.event(4, provision=-2 * HOUR, scheduled_end=keeping.seconds(-HOUR))
    await planned.event(5, provision=HOUR)
    await planned.event(6, provision=-HOUR, auto_provision_infrastructure=False)
    async with keeping.timekeeper():
        await planned.reached("requested", 1, 2)
        await until(lambda: planned.counted("event.termination_time_reached") == 1)
    assert planned.counted("provision.opened") == 2


async def test_what_is_there_already_or_not_there_at_all_stays_so(keeping: Keeping) -> None:
    planned = Planned(keeping)
    provisioning = planned.provisioning
    async with reconciling(keeping.core, MemoryProvisioner()):
        there, nothing = await planned.event(1, provision=-HOUR), await planned.event(2, end=-HOUR)
        await provisioning.provision(there)
        await provisioning.until(there, UP)
        async with keeping.timekeeper():
            await until(lambda: planned.counted("event.provision_time_reached") == 1)
            await until(lambda: planned.counted("event.termination_time_reached") == 1)
            await provisioning.provision(nothing)
            await provisioning.until(nothing, UP)
            await provisioning.terminate(there)
            await provisioning.until(there, GONE)
            await planned.event(3, provision=-1)
            await planned.reached("requested", 1, 2, 3)
    assert [(await provisioning.info(event)).state for event in (there, nothing)] == [GONE, UP]


class Restless(Waker):
    """A waker that never sleeps."""

    async def sleep(self, seconds: float = 0.0) -> bool:
        return await super().sleep(0.0)


async def test_a_refused_provisioning_is_logged_once_and_retried(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rests, "FIRST", 0.01)
    planned = Planned(keeping)
    event = await planned.event(1, provision=-1, infrastructure_profile_id=None)
    async with keeping.timekeeper(waker=Restless()) as timekeeper:
        await until(lambda: any(seconds > 2 * Rests.FIRST for _, seconds in timekeeper._rests._rests.values()))
        [reported] = await planned.provisioning.noted(event)
        assert reported.startswith("the schedule could not provision what was due at ")
        assert ": the Event has no infrastructure profile; it is tried again" in reported
        await keeping.change(1, infrastructure_profile_id=await planned.provisioning.profile("origin-1", deployment="static"))
        await planned.reached("requested", 1)


async def test_while_it_is_terminated_it_waits(keeping: Keeping) -> None:
    """A run of an earlier time is still ending."""
    planned, provisioner = Planned(keeping), MemoryProvisioner()
    provisioning = planned.provisioning
    async with reconciling(keeping.core, provisioner):
        event = await planned.event(1)
        await provisioning.provision(event)
        await provisioning.until(event, UP)
        provisioner.gate.clear()
        await provisioning.terminate(event)
        async with keeping.timekeeper() as timekeeper:
            await keeping.change(1, scheduled_provision_at=keeping.seconds(-1))
            await until(lambda: len(timekeeper._rests.present()) == 1)
            assert (await provisioning.info(event)).state is ProvisionState.TERMINATING
            provisioner.gate.set()
            await provisioning.until(event, UP)


async def test_a_clock_that_jumps_ahead_and_back_asks_once_for_each_time(keeping: Keeping) -> None:
    planned, now, hour = Planned(keeping), keeping.clock.now, timedelta(hours=1)
    event = await planned.event(1, provision=HOUR, end=3 * HOUR)
    due = HandDue(keeping.core.database, now)
    async with keeping.timekeeper(due=due), reconciling(keeping.core, MemoryProvisioner()):
        due.now = now + 2 * hour
        await planned.reached("requested", 1)
        await planned.provisioning.until(event, UP)
        for hours in (-2, 2):
            due.now = now + hours * hour
            await due.looked()
        due.now = now + 4 * hour
        await planned.provisioning.until(event, GONE)
        due.now = now + 2 * hour
        await due.looked()
    assert (planned.asked("requested"), planned.asked("termination_requested")) == ([1], [1])


async def test_two_that_both_think_they_are_active_ask_once(
    keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    """This happens if one was frozen until after its lease. Each has found all Events before the other has written any."""
    planned = Planned(keeping)
    for number in range(1, 21):
        await planned.event(number, provision=-HOUR)
    other = core(keeping.url, role=migrated[1], clock=clock)
    await other.start()
    try:
        async with log_locked(keeping.url):
            first, second = keeping.timekeeper(), keeping.timekeeper(core=other)
            await first.__aenter__()
            await until(lambda: len(appenders(keeping.url, waiting=True)) == 1)
            rows(keeping.url, _LEASE_ENDS)
            await second.__aenter__()
            await until(lambda: len(appenders(keeping.url, waiting=True)) == 2)
        await planned.reached("requested", *range(1, 21))
        await second.__aexit__(None, None, None)
        await first.__aexit__(None, None, None)
    finally:
        await other.stop()
    assert sorted(planned.asked("requested")) == list(range(1, 21))


async def test_one_that_is_killed_before_it_wrote_loses_nothing(
    keeping: Keeping, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    planned = Planned(keeping)
    async with Wire(keeping.url) as wire:
        doomed = core(wire.conninfo, role=migrated[1], clock=clock)
        await doomed.start()
        try:
            await planned.event(1, provision=-1)
            first = keeping.timekeeper(core=doomed, lease=1.0)
            async with log_locked(keeping.url):
                await first.__aenter__()
                await until(lambda: appenders(keeping.url, waiting=True))
                result = appenders(keeping.url, waiting=True)
                await wire.cut()
                terminate(keeping.url, result)
            assert planned.asked("requested") == []
            async with keeping.timekeeper(lease=1.0):
                await planned.reached("requested", 1)
            await wire.mend()
            await first.__aexit__(None, None, None)
        finally:
            await doomed.stop()
    assert planned.asked("requested") == [1]


async def test_how_late_it_was_is_measured(keeping: Keeping) -> None:
    planned = Planned(keeping)
    await planned.event(1, provision=-100, end=HOUR)
    await planned.event(2, end=-100)

    def late(action: str) -> float:
        return keeping.registry.get_sample_value("medialedger_timekeeper_late_seconds_sum", {"action": action}) or 0.0

    async with keeping.timekeeper():
        await until(lambda: all(100 < late(action) < 600 for action in ("provision", "terminate")))
