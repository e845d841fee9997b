"""Ids of jobs: in ascending order, never given twice."""

from __future__ import annotations

import asyncio

from api.wiring.core import Core
from projections.job.queue import JobNumberSequence


async def test_numbers_go_up_by_one(inner: Core) -> None:
    numbers = JobNumberSequence(inner.database)
    first = await numbers.draw()
    assert [await numbers.draw() for _ in range(3)] == [first + 1, first + 2, first + 3]


async def test_concurrent_draws_are_answered_in_order(inner: Core) -> None:
    numbers = JobNumberSequence(inner.database)
    drawn = await asyncio.gather(*(numbers.draw() for _ in range(300)))
    assert drawn == sorted(drawn)
    assert len(set(drawn)) == 300


async def test_two_processes_never_get_the_same(inner: Core, other: Core) -> None:
    here, there = JobNumberSequence(inner.database), JobNumberSequence(other.database)
    drawn = await asyncio.gather(*(numbers.draw() for _ in range(200) for numbers in (here, there)))
    assert len(set(drawn)) == 400
    assert drawn[::2] == sorted(drawn[::2])


async def test_a_cancelled_draw_takes_no_number_of_another(inner: Core) -> None:
    numbers = JobNumberSequence(inner.database)
    asked = [asyncio.ensure_future(numbers.draw()) for _ in range(5)]
    asked[2].cancel()
    drawn = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(drawn[2], asyncio.CancelledError)
    assert len({number for number in drawn if isinstance(number, int)}) == 4
