"""The order in which lists get the connections that there are for them."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel.errors import Unavailable
from projections.kernel.database.fair_queue import FairQueue
from projections.kernel.database.readers import READER, ClientBudget, ClientBudgets, Reader
from tests.projections.log.helpers import until


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def too_many() -> Unavailable:
    return Unavailable("too many lists")


class Reads:
    """Reads that end when they are told to. `begun` says who has had a place, in the order."""

    def __init__(self, queue: FairQueue, readers: ClientBudgets | None = None) -> None:
        self.queue = queue
        self.readers = readers
        self.begun: list[str] = []
        self.in_progress: list[tuple[str, asyncio.Event]] = []

    def ask(self, reader: str) -> asyncio.Task[None]:
        context = copy_context()
        context.run(READER.set, Reader(reader, self.readers))
        return asyncio.get_running_loop().create_task(self._read(reader), context=context)

    async def _read(self, reader: str) -> None:
        taken = await self.queue.take()
        ended = asyncio.Event()
        self.begun.append(reader)
        self.in_progress.append((reader, ended))
        try:
            await ended.wait()
        finally:
            self.in_progress.remove((reader, ended))
            self.queue.leave(taken)

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def end_all(self) -> None:
        await self.settle()
        while self.in_progress:
            self.in_progress[0][1].set()
            await self.settle()


async def test_one_reader_has_no_more_than_its_share() -> None:
    reads = Reads(FairQueue(4, each=2, waiting=100, refusal=too_many))
    tasks = [reads.ask("greedy") for _ in range(10)]
    await reads.settle()
    assert reads.begun == ["greedy", "greedy"]
    tasks.append(reads.ask("patient"))
    await reads.settle()
    assert reads.begun == ["greedy", "greedy", "patient"], "a free place is given at once"
    await reads.end_all()
    await asyncio.gather(*tasks)
    assert reads.begun.count("greedy") == 10


async def test_readers_that_wait_are_served_in_turns() -> None:
    reads = Reads(FairQueue(1, each=1, waiting=100, refusal=too_many))
    tasks = [reads.ask("greedy") for _ in range(5)]
    await reads.settle()
    tasks += [reads.ask(name) for name in ("b", "c", "b")]
    await reads.end_all()
    await asyncio.gather(*tasks)
    assert reads.begun == ["greedy", "greedy", "b", "c", "greedy", "b", "greedy", "greedy"]


async def test_a_full_queue_takes_from_the_reader_with_the_most() -> None:
    reads = Reads(FairQueue(1, each=1, waiting=3, refusal=too_many))
    greedy = [reads.ask("greedy") for _ in range(4)]
    await reads.settle()
    late = reads.ask("late")
    await reads.settle()
    with pytest.raises(Unavailable, match="too many lists"):
        await greedy[-1]
    once_more = reads.ask("greedy")
    with pytest.raises(Unavailable, match="too many lists"):
        await once_more
    await reads.end_all()
    await asyncio.gather(*greedy[:3], late)
    assert reads.queue.stats()["requests_errors"] == 2


async def test_a_wait_that_is_too_long_ends() -> None:
    queue = FairQueue(1, each=1, waiting=3, refusal=too_many, patience=0.01)
    reads = Reads(queue)
    first = reads.ask("a")
    await reads.settle()
    with pytest.raises(Unavailable, match="too many lists"):
        await reads.ask("b")
    await reads.end_all()
    await first
    assert queue.stats()["requests_waiting"] == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["ask", "end", "cancel"])), max_size=60))
def test_no_place_is_lost_and_none_is_given_twice(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        queue = FairQueue(3, each=2, waiting=5, refusal=too_many)
        reads = Reads(queue)
        tasks: list[asyncio.Task[None]] = []
        for reader, step in steps:
            if step == "ask":
                tasks.append(reads.ask(reader))
            elif step == "cancel" and tasks:
                tasks[len(tasks) // 2].cancel()
            elif reads.in_progress:
                reads.in_progress[0][1].set()
            if reader != "c":  # two things may happen in the same moment
                await reads.settle()
            readers = [name for name, _ in reads.in_progress]
            assert len(readers) <= 3
            assert all(readers.count(name) <= 2 for name in readers)
        await reads.end_all()
        await asyncio.gather(*tasks, return_exceptions=True)
        probes = [reads.ask(name) for name in "def"]
        await reads.settle()
        assert len(reads.in_progress) == 3, "every place can be taken again"
        await reads.end_all()
        await asyncio.gather(*probes)
        assert queue.stats()["requests_waiting"] == 0

    asyncio.run(run())


async def test_the_request_that_makes_room_may_just_have_been_cancelled() -> None:
    reads = Reads(FairQueue(1, each=1, waiting=2, refusal=too_many))
    greedy = [reads.ask("greedy") for _ in range(3)]
    await reads.settle()
    patient = reads.ask("patient")
    greedy[-1].cancel()
    await reads.end_all()
    await asyncio.gather(*greedy[:-1], patient)
    assert reads.begun.count("patient") == 1


async def test_a_client_among_others_pauses_after_it_used_its_budget(clock: Clock) -> None:
    readers = ClientBudgets(ClientBudget(seconds=0.1, window=0.2), clock=clock)
    reads = Reads(FairQueue(2, each=1, waiting=100, refusal=too_many, clock=clock), readers)
    for name in ("greedy", "patient"):
        readers.sent(name)
    tasks = [reads.ask("greedy")]
    await reads.settle()
    clock.now += 0.12
    readers.sent("patient")
    reads.in_progress[0][1].set()
    tasks.append(reads.ask("greedy"))
    await reads.settle()
    assert (reads.begun, reads.in_progress) == (["greedy"], []), "a place is free, and it rests"
    tasks.append(reads.ask("patient"))
    await reads.settle()
    assert reads.begun == ["greedy", "patient"]
    clock.now += 0.04
    await until(lambda: len(reads.begun) == 3, seconds=5)  # without anybody who leaves a place
    assert reads.begun == ["greedy", "patient", "greedy"]
    await reads.end_all()
    await asyncio.gather(*tasks)


async def test_occupied_places_do_not_count_while_others_send(clock: Clock) -> None:
    readers = ClientBudgets(ClientBudget(seconds=0.1, window=10.0), clock=clock)
    reads = Reads(FairQueue(1, each=1, waiting=100, refusal=too_many, counts=False, clock=clock), readers)
    for _ in range(2):
        task = reads.ask("slow")
        await reads.settle()
        clock.now += 5
        readers.sent("other")
        await reads.end_all()
        await task
    assert reads.begun == ["slow", "slow"]
    assert Reader("slow", readers).rest == 0
