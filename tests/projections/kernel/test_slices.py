"""Long work leaves turns of the event loop to others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from projections.kernel.database.readers import READER, ClientBudget, ClientBudgets, Reader
from projections.kernel.sql.slices import in_slices


async def test_other_tasks_run_between_two_slices() -> None:
    seen: list[str] = []

    async def other() -> None:
        while len(seen) < 5:
            seen.append("other")
            await asyncio.sleep(0)

    other_task = asyncio.create_task(other())

    def double(numbers: Sequence[int]) -> list[int]:
        seen.append("item")
        return [number * 2 for number in numbers]

    made = await in_slices(double, range(5), size=1)
    assert made == [0, 2, 4, 6, 8]
    assert [entry for entry in seen if entry == "item"] == ["item"] * 5
    assert "other" in seen[2:-1], "between two of them"
    await other_task


async def test_a_reader_that_is_alone_has_all_of_it_at_once() -> None:
    readers, seen = ClientBudgets(), list[str]()
    READER.set(readers.sent("one"))
    other_call = asyncio.get_running_loop().call_soon(seen.append, "other")
    assert await in_slices(lambda numbers: seen.append("slice") or numbers, range(5), size=1) == list(range(5))  # type: ignore[func-returns-value]
    assert seen == ["slice"] * 5
    other_call.cancel()


async def test_no_items_give_no_results() -> None:
    assert await in_slices(list, []) == []


async def test_the_time_is_taken_from_the_share_of_the_reader() -> None:
    readers = ClientBudgets(ClientBudget(seconds=0.001))
    READER.set(readers.sent("one"))
    until = asyncio.get_running_loop().time() + 0.01

    def work(_: Sequence[int]) -> Sequence[int]:
        while asyncio.get_running_loop().time() < until:
            pass
        return ()

    await in_slices(work, [1, 2])
    readers.sent("another")
    assert Reader("one", readers).rest > 0.0
