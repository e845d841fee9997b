"""Shared queries: how many, how large, and who hears what. (tests/projections/log/test_tail.py has the races.)"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from projections.kernel.data_loader import DataLoader


class Desk:
    """Answers a question only when it is let, and remembers what it was asked. `crowded` once so many queries are under way."""

    def __init__(self, *, crowd: int = 1) -> None:
        self.crowd = crowd
        self.asked: list[list[int]] = []
        self.in_progress = 0
        self.most = 0
        self.open = asyncio.Event()
        self.crowded = asyncio.Event()

    async def __call__(self, keys: Sequence[int]) -> dict[int, str]:
        self.asked.append(list(keys))
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        if self.in_progress >= self.crowd:
            self.crowded.set()
        await self.open.wait()
        self.in_progress -= 1
        if 13 in keys:
            raise ValueError(13)
        return {key: str(key) for key in keys if key < 100}


async def test_concurrent_questions_are_one_query_that_names_each_key_once() -> None:
    desk = Desk()
    desk.open.set()
    ask = DataLoader[int, str](desk)
    answers = await asyncio.gather(*(ask(key) for key in (1, 2, 1, 200, 2)))
    assert answers == ["1", "2", "1", None, "2"]
    assert desk.asked == [[1, 2, 200]]


async def test_a_lookup_of_several_keys_leaves_unknown_ones_out() -> None:
    desk = Desk()
    desk.open.set()
    ask = DataLoader[int, str](desk)
    assert await ask.many([3, 200, 1]) == {3: "3", 1: "1"}
    assert await ask.many([]) == {}
    assert desk.asked == [[3, 200, 1]]


async def test_no_query_is_larger_than_the_limit_and_no_more_run_than_there_are_lanes() -> None:
    desk = Desk(crowd=2)
    ask = DataLoader[int, str](desk, lanes=2, limit=3)
    answers = asyncio.gather(*(ask(key) for key in range(10)))
    await desk.crowded.wait()
    desk.open.set()
    assert await answers == [str(key) for key in range(10)]
    assert [len(keys) for keys in desk.asked] == [3, 3, 3, 1]
    assert desk.most == 2


async def test_a_failed_query_fails_for_all_its_callers_and_later_queries_work() -> None:
    desk = Desk()
    desk.open.set()
    ask = DataLoader[int, str](desk)
    answers = await asyncio.gather(ask(13), ask(1), ask(13), return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError] * 3
    assert await ask(1) == "1"
    with pytest.raises(ValueError, match="13"):
        await ask(13)


async def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    desk = Desk()
    ask = DataLoader[int, str](desk)

    async def asks() -> str | None:
        return await ask(1)

    gone, stays = asyncio.create_task(asks()), asyncio.create_task(asks())
    await desk.crowded.wait()
    gone.cancel()
    desk.open.set()
    assert await stays == "1"
    assert gone.cancelled()
    assert await ask(2) == "2"
