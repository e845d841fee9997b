"""Admission: the rules as a table, and the append when two controllers propose at the same time. ADR 0021."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.wiring.core import Core
from domain.job.aggregate import Job
from domain.job.values import JobState
from domain.kernel.errors import ClaimTaken, Conflict
from domain.kernel.ports import Invocation
from projections.consumers.leases import shard_of
from projections.job.admission import AT_ONCE, AdmittedJob, Capacity, QueuedJob, QueuedJobs, UsedSlots, admit
from projections.job.view import SHARDS
from tests.projections.job.jobs_made import accept, begin, complete, start, started, update
from tests.support.feeding import do

NOBODY = UsedSlots(frozenset(), frozenset())
LOW, HIGH = 5, 1


def used(slots: Sequence[int] = (), low: Sequence[int] = ()) -> UsedSlots:
    return UsedSlots(frozenset(slots), frozenset(low))


def queue(*priorities: int) -> list[QueuedJob]:
    """Jobs 1, 2, 3 … in the order in which they start."""
    assert list(priorities) == sorted(priorities)
    return [QueuedJob(number, priority) for number, priority in enumerate(priorities, start=1)]


def capacity(max_jobs: int, priority_slots: int = 0, threshold: int = 5) -> Capacity:
    return Capacity(max_jobs, priority_slots, threshold)


@pytest.mark.parametrize(
    ("queued", "now", "limits", "expected"),
    [
        (queue(), NOBODY, capacity(2), []),
        (queue(LOW, LOW, LOW), NOBODY, capacity(2), [(1, 1, 1), (2, 2, 2)]),
        (queue(HIGH, LOW), NOBODY, capacity(2), [(1, 1, None), (2, 2, 1)]),
        (queue(LOW), used([1], [1]), capacity(2), [(1, 2, 2)]),
        (queue(LOW), used([2], [2]), capacity(2), [(1, 1, 1)]),
        (queue(LOW), used([1, 2], [1, 2]), capacity(2), []),
        (queue(HIGH), used([1, 2], [1, 2]), capacity(2), []),
        (queue(LOW), NOBODY, capacity(0), []),
        (queue(HIGH), NOBODY, capacity(0), []),
        (queue(LOW, LOW), NOBODY, capacity(2, 1), [(1, 1, 1)]),
        (queue(LOW), used([1], [1]), capacity(2, 1), []),
        (queue(HIGH), used([1], [1]), capacity(2, 1), [(1, 2, None)]),
        (queue(HIGH, LOW, LOW), used([1], [1]), capacity(3, 1), [(1, 2, None), (2, 3, 2)]),
        (queue(HIGH, HIGH), used([1]), capacity(3, 1), [(1, 2, None), (2, 3, None)]),
        (queue(LOW), used([1, 2], []), capacity(3, 1), [(1, 3, 1)]),
        (queue(LOW), NOBODY, capacity(2, 2), []),
        (queue(HIGH), NOBODY, capacity(2, 2), [(1, 1, None)]),
        (queue(LOW), NOBODY, capacity(2, 9), []),
        (queue(LOW, LOW), used([1, 2, 3], [1, 2, 3]), capacity(2), []),
        (queue(HIGH), used([5, 7], [5]), capacity(2), []),
        (queue(LOW), used([5], [5]), capacity(2), [(1, 1, 1)]),
        (queue(LOW), used([3], [4]), capacity(3, 1), [(1, 1, 1)]),
        (queue(HIGH, LOW), used([3, 4], [3, 4]), capacity(3, 1), [(1, 1, None)]),
        (queue(4, 5), NOBODY, capacity(2, 1), [(1, 1, None), (2, 2, 1)]),
        (queue(5, 5), NOBODY, capacity(2, 1, 6), [(1, 1, None), (2, 2, None)]),
        (queue(1, 1), NOBODY, capacity(2, 1, 1), [(1, 1, 1)]),
        (queue(10, 10), NOBODY, capacity(2, 1, 11), [(1, 1, None), (2, 2, None)]),
    ],
)
def test_queued_jobs_that_may_start(
    queued: list[QueuedJob], now: UsedSlots, limits: Capacity, expected: list[tuple[int, int, int | None]]
) -> None:
    assert [(start.queued.job, start.slot, start.low_slot) for start in admit(queued, now, capacity=limits)] == expected


@given(
    st.lists(st.integers(1, 10), max_size=30).map(sorted),
    st.sets(st.integers(1, 12)),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(1, 11),
    st.randoms(use_true_random=False),
)
def test_no_slot_is_given_twice_and_the_limit_is_kept(
    priorities: list[int], slots: set[int], max_jobs: int, priority_slots: int, threshold: int, dice: Random
) -> None:
    low = frozenset(dice.sample(sorted(slots), dice.randint(0, len(slots))))
    now, limits = UsedSlots(frozenset(slots), low), Capacity(max_jobs, priority_slots, threshold)
    admitted = admit(queue(*priorities), now, capacity=limits)
    given_out = [start.slot for start in admitted]
    given_low = [start.low_slot for start in admitted if start.low_slot is not None]
    assert not slots.intersection(given_out)
    assert not low.intersection(given_low)
    assert len(set(given_out)) == len(given_out)
    assert len(set(given_low)) == len(given_low)
    assert len(slots) + len(given_out) <= max(max_jobs, len(slots))
    assert len(low) + len(given_low) <= max(limits.low, len(low))
    assert [start.queued.job for start in admitted] == list(range(1, len(admitted) + 1)), "nobody is passed over"
    if len(admitted) < len(priorities):
        urgent = priorities[len(admitted)] < threshold
        assert len(slots) + len(admitted) >= max_jobs or (not urgent and len(low) + len(given_low) >= limits.low)


def test_many_jobs_are_started_in_several_rounds() -> None:
    many = [QueuedJob(number, LOW) for number in range(1, AT_ONCE + 100)]
    admitted = admit(many, NOBODY, capacity=capacity(10_000))
    assert [start.slot for start in admitted] == list(range(1, AT_ONCE + 1))


def test_controllers_that_begin_elsewhere_choose_other_slots() -> None:
    now, limits = used([1, 6], [1]), capacity(8, 2)
    chosen = [admit(queue(LOW, LOW), now, capacity=limits, begin=begin) for begin in (0.0, 0.5, 0.9)]
    assert [[(start.slot, start.low_slot) for start in starts] for starts in chosen] == [
        [(2, 2), (3, 3)],
        [(5, 4), (7, 5)],
        [(8, 6), (2, 2)],
    ]


class TestReading:
    async def test_clients_with_something_queued(self, inner: Core) -> None:
        assert await QueuedJobs(inner.database).clients() == []
        for number, client in enumerate(["b", "a", "b", "c", "a", "d"], start=1):
            await accept(inner, number, client=client)
        await start(inner, 4, slot=1)
        await update(inner, 6, queue_state=JobState.PAUSED)
        assert await QueuedJobs(inner.database).clients() == ["a", "b"]

    async def test_a_queue_in_the_order_in_which_it_starts(self, inner: Core) -> None:
        for number, priority in ((1, 5), (2, 9), (3, 1), (4, 5), (5, 1)):
            await accept(inner, number, priority=priority)
        await accept(inner, 6, client="other")
        limits = {"studio": capacity(4), "other": capacity(1), "nobody": capacity(3)}
        queues = await QueuedJobs(inner.database).queued(limits, dict.fromkeys(limits, NOBODY))
        assert {client: [job[:2] for job in jobs] for client, jobs in queues.items()} == {
            "studio": [(3, 1), (5, 1), (1, 5), (4, 5)],
            "other": [(6, 5)],
        }

    async def test_the_shards_together_have_those_that_start(self, inner: Core) -> None:
        """The whole queue decides which jobs have a slot, whatever part of it is requested."""
        for number in range(1, 41):
            await accept(inner, number, priority=HIGH if number % 4 == 0 else LOW)
        await start(inner, 1, slot=1, low_slot=1)
        reading, limits = QueuedJobs(inner.database), {"studio": capacity(20, 5)}
        now = await reading.used_slots(["studio"])
        whole = (await reading.queued(limits, now))["studio"]
        assert [job.job for job in whole] == [*range(4, 41, 4), 2, 3, 5, 6, 7, 9, 10, 11, 13]
        parts = [await reading.queued(limits, now, shards=range(first, SHARDS, 4)) for first in range(4)]
        assert sorted(job for part in parts for job in part.get("studio", [])) == sorted(whole)
        assert all(part["studio"] for part in parts)
        assert {(job.shard, job.queue) for job in whole} == {(shard_of(str(job.job), SHARDS), "work") for job in whole}

    async def test_slots_are_held_until_the_job_ends(self, inner: Core) -> None:
        await accept(inner, 1)
        await start(inner, 1, slot=2, low_slot=1)
        await accept(inner, 2, client="other", priority=1)
        await start(inner, 2, slot=7)
        reading = QueuedJobs(inner.database)
        assert await reading.used_slots(["studio", "other", "nobody"]) == {
            "studio": used([2], [1]),
            "other": used([7]),
            "nobody": NOBODY,
        }
        await begin(inner, 1)
        await update(inner, 1, queue_state=JobState.PAUSED)
        assert await reading.used_slots(["studio"]) == {"studio": used([2], [1])}
        await complete(inner, 1)
        await update(inner, 2, queue_state=JobState.BROKEN)
        assert await reading.used_slots(["studio", "other"]) == {"studio": NOBODY, "other": NOBODY}


async def go(inner: Core, limits: Capacity) -> list[AdmittedJob]:
    """A controller's round; those that the log took."""
    reading = QueuedJobs(inner.database)
    now = (await reading.used_slots(["studio"]))["studio"]
    queued = (await reading.queued({"studio": limits}, {"studio": now})).get("studio", [])
    return await propose(inner, admit(queued, now, capacity=limits))


async def propose(inner: Core, starts: Sequence[AdmittedJob]) -> list[AdmittedJob]:
    commands = [
        Job.start.on(start.queued.job, slot=start.slot, low_slot=start.low_slot, priority=start.queued.priority) for start in starts
    ]
    ends = await asyncio.gather(
        *(inner.executor.execute(command, invocation=Invocation.by("system")) for command in commands), return_exceptions=True
    )
    assert all(isinstance(end, Conflict) for end in ends if isinstance(end, BaseException))
    return [start for start, end in zip(starts, ends, strict=True) if not isinstance(end, BaseException)]


async def counted(inner: Core, state: JobState) -> int:
    [(count,)] = await inner.database.rows("SELECT count(*) FROM job_view WHERE state = %s", (int(state),))
    return int(count)


class TestTwoControllers:
    async def test_the_second_claim_of_a_slot_is_refused(self, inner: Core, other: Core) -> None:
        await accept(inner, 1)
        await accept(inner, 2)
        await start(inner, 1, slot=1, low_slot=1)
        with pytest.raises(ClaimTaken):
            await do(other, Job.start.on(2, slot=1, low_slot=None, priority=5))
        with pytest.raises(ClaimTaken):
            await do(other, Job.start.on(2, slot=2, low_slot=1, priority=5))
        assert await counted(inner, JobState.STARTED) == 1
        await do(other, Job.start.on(2, slot=2, low_slot=2, priority=5))

    async def test_the_same_job_is_started_once(self, inner: Core, other: Core) -> None:
        for number in range(1, 11):
            await accept(inner, number)
            await asyncio.gather(
                do(inner, Job.start.on(number, slot=number, low_slot=None, priority=5)),
                do(other, Job.start.on(number, slot=number + 100, low_slot=None, priority=5)),
            )
        started_events = await inner.database.rows("SELECT count(*) FROM events WHERE topic = 'job.started'")
        assert started_events == [(10,)]
        assert await inner.database.rows("SELECT count(*) FROM unique_claims WHERE scope = 'job.slot.studio'") == [(10,)]

    async def test_concurrent_controllers_never_start_too_many_jobs(self, inner: Core, other: Core) -> None:
        """Both controllers read, then both append: each believes that all slots are free."""
        limits = capacity(3, 1)
        for number in range(1, 31):
            await accept(inner, number, priority=LOW if number % 3 else HIGH)
        ended = 0
        while ended < 30:
            now = (await QueuedJobs(inner.database).used_slots(["studio"]))["studio"]
            queued = (await QueuedJobs(inner.database).queued({"studio": limits}, {"studio": now})).get("studio", [])
            first = admit(queued, now, capacity=limits)
            second = admit(queued[1:], now, capacity=limits)
            await asyncio.gather(propose(inner, first), propose(other, second))
            holding = (await QueuedJobs(inner.database).used_slots(["studio"]))["studio"]
            assert len(holding.slots) == await counted(inner, JobState.STARTED) <= 3
            assert len(holding.low_slots) <= 2
            for (job,) in await inner.database.rows("SELECT id FROM job_view WHERE state = 1 ORDER BY id LIMIT 2"):
                await begin(inner, job)
                await complete(inner, job)
                ended += 1
        assert await counted(inner, JobState.COMPLETED) == 30


async def test_a_long_queue_that_is_not_urgent_never_starves_an_urgent_job(inner: Core) -> None:
    """Known fault: with every slot taken by others an urgent job waits for all of them. A reserved slot is free for it."""
    limits = capacity(2, 1)
    for number in range(1, 41):
        await accept(inner, number, priority=8)
    assert [start.queued.job for start in await go(inner, limits)] == [1]
    assert await go(inner, limits) == []
    await accept(inner, 99, priority=1)
    assert [start.queued.job for start in await go(inner, limits)] == [99]
    await begin(inner, 1)
    await complete(inner, 1)
    await accept(inner, 100, priority=1)
    assert [start.queued.job for start in await go(inner, limits)] == [100], "urgent ones may have every slot"


async def test_a_lower_limit_lets_running_jobs_end_and_starts_none_until_then(inner: Core) -> None:
    for number in (1, 2, 3):
        await started(inner, number)
    await accept(inner, 4)
    assert await go(inner, capacity(2)) == []
    await begin(inner, 1)
    await complete(inner, 1)
    assert await go(inner, capacity(2)) == []
    await begin(inner, 2)
    await complete(inner, 2)
    assert [(start.queued.job, start.slot) for start in await go(inner, capacity(2))] == [(4, 1)]


async def test_a_job_resumed_while_its_step_still_runs_keeps_its_slot_and_waits_for_no_other(inner: Core) -> None:
    await accept(inner, 1)
    await start(inner, 1, slot=1, low_slot=1)
    await begin(inner, 1)
    await update(inner, 1, queue_state=JobState.PAUSED)
    await update(inner, 1, queue_state=JobState.QUEUED)
    await accept(inner, 2)
    assert [admitted.queued.job for admitted in await go(inner, capacity(2))] == [1]
    assert (await QueuedJobs(inner.database).used_slots(["studio"]))["studio"] == used([1], [1])
