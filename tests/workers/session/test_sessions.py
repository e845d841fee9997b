"""Sessions on a real PostgreSQL: what is wanted runs once, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from random import Random
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from projections.session.store import SessionState
from tests.support.feeding import do
from tests.support.sessions import (
    FAST,
    LEASE,
    Member,
    World,
    an_event,
    channel_of,
    go_live,
    member,
    rows,
    stop,
    until,
)
from workers.session.session import RETRIES


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def single(inner: Core, world: World) -> AsyncIterator[Member]:
    async with member(inner.database, world) as made:
        yield made
    world.check()


async def test_a_session_runs_from_the_order_to_the_stop(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    channel = channel_of(event)
    await go_live(inner, event)
    await until(world.has_reported("started"))
    await until(world.sends(channel))
    [number] = world.numbers(channel)
    assert await rows(inner) == [(str(channel), number, "running", 0, "")]
    await stop(inner, event)
    await until(world.has_reported("stopped"))
    assert world.reported() == [("started", str(event), number), ("stopped", str(event), number, "")]
    assert await world.silent(channel)
    assert [row[2] for row in await rows(inner)] == ["stopped"]


async def test_each_start_has_a_higher_number(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    for times in range(1, 4):
        await go_live(inner, event)
        await until(world.has_reported("started", times))
        await stop(inner, event)
        await until(world.has_reported("stopped", times))
    numbers = [number for _, _, number in world.reported("started")]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 1_700_000_000, "higher than those of a database that was lost"


async def test_one_that_crashes_is_started_again_with_the_next_number(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    channel = channel_of(event)
    await go_live(inner, event)
    await until(world.sends(channel))
    single.kind.sessions[str(channel)].crash("exit code 1")
    await until(world.has_reported("started", 2))
    first, second = (number for _, _, number in world.reported("started"))
    assert second > first
    assert world.reported("stopped") == [("stopped", str(event), first, "exit code 1")]
    [(_, number, state, failures, _)] = await rows(inner)
    assert (number, state, failures) == (second, "running", 1)
    assert await inner.database.rows("SELECT restarts FROM sessions") == [(1,)]


def test_the_first_try_comes_within_five_seconds_and_the_last_ones_once_a_minute() -> None:
    waits = [RETRIES.after(failures) for failures in range(1, RETRIES.most)]
    assert waits[0] <= 5
    assert waits == sorted(waits)
    assert waits[-1] == 60
    assert RETRIES.after(10_000) == 60


async def test_one_that_cannot_be_started_is_given_up_until_the_next_order(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    single.kind.fails = "the source does not answer"
    await go_live(inner, event)
    await until(world.has_reported("failed"))
    assert len(single.kind.starts) == FAST.most
    assert world.reported("failed")[0] == ("failed", str(event), single.kind.starts[-1], "the source does not answer")
    assert [row[2:4] for row in await rows(inner)] == [("failed", FAST.most)]
    await do(inner, MediaEvent.release_channel.on(event, channel_of(event)))
    single.kind.fails = ""
    await stop(inner, event)
    await go_live(inner, event)
    await until(world.has_reported("started"))
    assert [row[2:4] for row in await rows(inner)] == [("running", 0)]


async def test_a_worker_that_takes_over_tells_of_a_failure_and_starts_nothing(inner: Core, world: World) -> None:
    event = await an_event(inner, 1)
    async with member(inner.database, world) as first_member:
        first_member.kind.fails = "no"
        await go_live(inner, event)
        await until(world.has_reported("failed"))
    reported = len(world.reported("failed"))
    async with member(inner.database, world, name="two") as second_member:
        await until(lambda: len(world.reported("failed")) > reported)
        assert second_member.kind.starts == []


async def test_what_has_nothing_to_run_is_given_up_at_once(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    single.kind.cannot = "nobody knows an encoder of the type x"
    await go_live(inner, event)
    await until(world.has_reported("failed"))
    assert (world.reported(), len(single.kind.starts)) == (
        [("failed", str(event), None, "nobody knows an encoder of the type x")] * len(world.reported()),
        1,
    )


async def test_an_abandoned_session_starts_again_only_after_its_row_is_written(
    inner: Core, world: World, single: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is written by a separate task, which may be behind: the worker reads rows that say that the session runs."""
    event = await an_event(inner, 1)
    single.kind.cannot = "nobody knows an encoder of the type x"
    single.worker._reports.pause()
    rounds = 0
    turn = single.worker._round

    async def counted() -> None:
        nonlocal rounds
        await turn()
        rounds += 1

    monkeypatch.setattr(single.worker, "_round", counted)
    await go_live(inner, event)
    await until(lambda: single.kind.starts and not single.worker.sessions)
    assert [row[2] for row in await rows(inner)] == ["starting"]
    seen = rounds
    await until(lambda: rounds >= seen + 3)
    single.worker._reports.resume()
    await until(world.has_reported("failed"))
    assert len(single.kind.starts) == 1
    single.kind.cannot = ""
    await do(inner, MediaEvent.release_channel.on(event, channel_of(event)))
    await stop(inner, event)
    await go_live(inner, event)
    await until(world.has_reported("started"))


async def test_a_forgiven_end_is_tried_again_for_ever(inner: Core, world: World, single: Member) -> None:
    event = await an_event(inner, 1)
    channel = str(channel_of(event))
    await go_live(inner, event)
    for times in range(1, FAST.most + 3):
        await until(world.has_reported("started", times))
        single.kind.sessions[channel].crash("all points fail", forgiven=True)
    await until(world.has_reported("started", FAST.most + 3))
    assert world.reported("failed") == []


async def test_a_session_that_waits_says_so_when_the_reason_changes(
    inner: Core, single: Member, caplog: pytest.LogCaptureFixture
) -> None:
    """Waiting does not count as a restart."""
    caplog.set_level("INFO")
    event = await an_event(inner, 1)
    single.kind.waits = "its hosts are not there"
    await go_live(inner, event)
    await until(lambda: len(single.kind.starts) > 10)
    single.kind.waits = "its points are not there"
    await until(lambda: "points are not there" in caplog.text)
    messages = [line.getMessage() for line in caplog.records if "are not there" in line.getMessage()]
    channel = channel_of(event)
    assert messages == [f"the session of {channel} waits: {why}" for why in ("its hosts are not there", "its points are not there")]
    single.kind.waits = ""
    await until(lambda: single.kind.sessions)
    assert await inner.database.rows("SELECT restarts FROM sessions") == [(0,)]
    assert single.worker._metrics._restarts.labels("memory")._value.get() == 0


def test_a_session_that_waits_looks_again_within_about_five_seconds() -> None:
    assert RETRIES.waiting <= 5


async def test_a_session_without_a_number_says_so_once(
    inner: Core, single: Member, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def broken(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise RuntimeError("the table is gone")

    event = await an_event(inner, 1)
    with monkeypatch.context() as patch:
        patch.setattr(single.worker._store, "draw", broken)
        await go_live(inner, event)
        await until(lambda: tries > 10)
    await until(lambda: single.kind.sessions)
    assert [line.getMessage() for line in caplog.records if "the table is gone" in line.getMessage()] == [
        f"the session of {channel_of(event)} waits for its number: the table is gone"
    ]


async def test_nothing_is_started_again_after_a_stop(inner: Core, world: World, single: Member) -> None:
    """The stop comes between a crash and the next attempt, during a start, and at any other time."""
    event = await an_event(inner, 1)
    channel = channel_of(event)
    await go_live(inner, event)
    await until(world.sends(channel))
    single.kind.sessions[str(channel)].crash()
    await stop(inner, event)
    await until(lambda: not single.worker.sessions)
    starts = len(single.kind.starts)
    single.kind.starting = asyncio.Event()
    await go_live(inner, event)
    await until(lambda: len(single.kind.starts) == starts + 1)
    await stop(inner, event)
    await asyncio.sleep(0.2)
    single.kind.starting.set()
    await until(lambda: not single.worker.sessions)
    written = len(world.writes[str(channel)])
    await asyncio.sleep(2 * FAST.longest)
    assert len(single.kind.starts) == starts + 1
    assert [row[2] for row in await rows(inner)] == ["stopped"]
    assert len(world.writes[str(channel)]) == written


async def test_a_start_that_does_not_end_is_cut_off_and_keeps_no_other_session(inner: Core, second: Core, world: World) -> None:
    events = [await an_event(inner, number) for number in (1, 2)]
    runs, stuck = (channel_of(event) for event in events)
    async with asyncio.timeout(120), member(inner.database, world, name="one", lease=30.0) as first_member:
        await go_live(inner, events[0])
        await until(world.sends(runs))
        first_member.kind.starting = asyncio.Event()
        for starts in (2, 3):
            await go_live(inner, events[1])
            await until(partial(first_member.kind.has_started, starts))
            if starts == 2:
                await stop(inner, events[1])
                await until(lambda: str(stuck) not in first_member.worker.sessions)
        async with member(second.database, world, name="two", lease=30.0) as second_member:
            await until(lambda: second_member.worker._renewed > 0)
            await first_member.worker.stop()
            first_member.worker._task = None
            assert await until(lambda: len(second_member.worker.sessions) == 2) < 10, "long before the lease of 30 seconds"
            await until(world.sends(runs))
            await until(world.sends(stuck))
    world.check()
    assert {name for _, name in world.writes[str(stuck)]} == {"two"}


async def test_two_events_follow_each_other_on_a_channel_without_an_overlap(inner: Core, world: World, single: Member) -> None:
    first = await an_event(inner, 1)
    second = await an_event(inner, 2, channel=1)
    for times, key in enumerate((first, second) * 3, start=1):
        await go_live(inner, key)
        await until(world.has_reported("started", times))
        await stop(inner, key)
    await until(lambda: not single.worker.sessions)
    assert [owner for _, owner, _ in world.reported("started")] == [str(first), str(second)] * 3


async def test_starts_and_stops_in_quick_succession_end_in_the_last_wish(inner: Core, world: World) -> None:
    """There are 100 rounds over three channels and two workers."""
    random = Random(17)
    events = [await an_event(inner, number) for number in (1, 2, 3)]
    live = dict.fromkeys(events, False)
    async with (
        member(inner.database, world, name="one") as first_member,
        member(inner.database, world, name="two") as second_member,
    ):
        for _ in range(100):
            key = random.choice(events)
            await (stop if live[key] else go_live)(inner, key)
            live[key] = not live[key]
            await asyncio.sleep(random.choice([0, 0, 0.01, 0.1]))
        wanted = {channel_of(key) for key, on in live.items() if on}

        def settled() -> bool:
            running = {
                UUID(key) for each in (first_member, second_member) for key, of in each.worker.sessions.items() if of.statistics()
            }
            return running == wanted and len(first_member.worker.sessions) + len(second_member.worker.sessions) == len(wanted)

        await until(settled)
        for key in wanted:
            await until(world.sends(key))
        for key in {channel_of(each) for each in events} - wanted:
            assert await world.silent(key)
    world.check()


class TestTakeover:
    async def test_a_dead_worker_is_replaced_within_seconds(self, inner: Core, second: Core, world: World) -> None:
        events = [await an_event(inner, number) for number in range(1, 9)]
        async with (
            member(inner.database, world, name="one") as first_member,
            member(second.database, world, name="two") as second_member,
        ):
            for key in events:
                await go_live(inner, key)
            await until(lambda: len(first_member.worker.sessions) + len(second_member.worker.sessions) == len(events))
            await until(world.has_reported("started", len(events)))
            await first_member.die()
            took = await until(lambda: len(second_member.worker.sessions) == len(events))
            assert took < LEASE + LEASE / 3 + 20, "a lease, and the time until the next look; the rest is a busy machine"
            for key in events:
                await until(world.sends(channel_of(key)))
        world.check()

    async def test_a_worker_that_is_stopped_hands_over_at_once(self, inner: Core, second: Core, world: World) -> None:
        event = await an_event(inner, 1)
        channel = channel_of(event)
        async with member(inner.database, world, name="one", lease=30.0) as first_member:
            await go_live(inner, event)
            await until(world.sends(channel))
            async with member(second.database, world, name="two", lease=30.0) as second_member:
                await until(lambda: second_member.worker._renewed > 0)
                assert not second_member.worker.sessions, "what runs stays where it is"
                await first_member.worker.stop()
                first_member.worker._task = None
                assert [row[2] for row in await rows(inner)] in (["handed_over"], ["starting"], ["running"])
                assert await until(lambda: second_member.worker.sessions) < 10, "long before the lease of 30 seconds"
                await until(world.sends(channel))
        world.check()
        assert world.reported("stopped")[0][3] == "its worker was stopped"

    async def test_a_late_report_of_a_failure_does_not_end_a_new_session(self, inner: Core, second: Core, world: World) -> None:
        """A worker gives up, and is cut off before it has reported this: another one starts the session, which runs."""
        event = await an_event(inner, 1)
        async with member(inner.database, world, name="one") as first_member:
            first_member.kind.cannot = "its disk is full"
            first_member.worker._reports.pause()
            await go_live(inner, event)
            await until(lambda: first_member.kind.starts and not first_member.worker.sessions)
            await first_member.die()
            async with member(second.database, world, name="two"):
                await until(world.has_reported("started"))
                first_member.worker._reports.resume()
                await first_member.worker._reports.stop()
        assert world.reported("failed") == []

    async def test_a_worker_in_a_long_turn_hears_of_another_one(
        self, inner: Core, second: Core, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker continues to send after its lease only if it is alone, while the database is unavailable."""
        turning, over = asyncio.Event(), asyncio.Event()

        async def long() -> None:
            turning.set()
            await over.wait()

        async with member(inner.database, world, name="one") as first_member:
            await until(lambda: first_member.worker._permit._alone)
            monkeypatch.setattr(first_member.worker, "_round", long)
            await turning.wait()
            try:
                async with member(second.database, world, name="two"):
                    await until(lambda: not first_member.worker._permit._alone)
            finally:
                over.set()

    async def test_an_unwanted_session_of_a_dead_worker_is_ended(self, inner: Core, second: Core, world: World) -> None:
        event = await an_event(inner, 1)
        async with member(inner.database, world, name="one") as first_member:
            await go_live(inner, event)
            await until(world.has_reported("started"))
            await first_member.die()
            await stop(inner, event)
            async with member(second.database, world, name="two") as second_member:
                await until(world.has_reported("stopped"))
                assert second_member.kind.starts == []
        assert [row[2] for row in await rows(inner)] == [SessionState.STOPPED]
