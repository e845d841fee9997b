"""Work that goes on whatever fails: each fault is reported once, and so is that it has passed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import FAULTS, BackgroundTask, OperatorNeeded, run_forever, start_task


async def reports(
    outcomes: Sequence[Exception | None], caplog: pytest.LogCaptureFixture, *, by_name: bool = False, reminder: float = 30.0
) -> list[tuple[int, str]]:
    """Return the log records of turns with these outcomes."""
    remaining: Iterator[Exception | None] = iter(outcomes)
    done = 0

    async def turn() -> None:
        nonlocal done
        done += 1
        fault = next(remaining)
        if fault is not None:
            raise fault

    with caplog.at_level(logging.INFO, logger="projections.kernel.background_task"):
        await run_forever(turn, what="work", until=lambda: done == len(outcomes), pause=0.0, by_name=by_name, reminder=reminder)
    return [(record.levelno, record.getMessage()) for record in caplog.records]


async def test_a_fault_is_reported_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    away = Unavailable("the database is away")
    assert await reports([None, away, away, away, None, None, away], caplog) == [
        (logging.WARNING, "work: Unavailable: the database is away; trying again until it works"),
        (logging.INFO, "work: works again"),
        (logging.WARNING, "work: Unavailable: the database is away; trying again until it works"),
    ]


async def test_another_fault_is_another_report(caplog: pytest.LogCaptureFixture) -> None:
    results = await reports([Unavailable("a"), Unavailable("b"), None], caplog)
    assert [message for _, message in results] == [
        "work: Unavailable: a; trying again until it works",
        "work: Unavailable: b; trying again until it works",
        "work: works again",
    ]


async def test_a_fault_that_lasts_is_reported_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    away = Unavailable("the database is away")
    results = await reports([away, away, away, None], caplog, reminder=0.0)
    assert [message for _, message in results] == 3 * ["work: Unavailable: the database is away; trying again until it works"] + [
        "work: works again"
    ]


async def test_a_task_for_the_operator_is_logged_as_an_error_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    assert await reports([OperatorNeeded("run the command"), None], caplog) == [
        (logging.ERROR, "work: stopped: run the command"),
        (logging.INFO, "work: works again"),
    ]
    assert caplog.records[0].exc_info is None


async def test_a_fault_of_ours_is_an_error_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    assert await reports([KeyError("x"), KeyError("x"), None], caplog) == [
        (logging.ERROR, "work: failed; trying again"),
        (logging.INFO, "work: works again"),
    ]
    assert caplog.records[0].exc_info is not None


async def test_errors_by_name_do_not_show_the_message(caplog: pytest.LogCaptureFixture) -> None:
    assert await reports([KeyError("a secret"), None], caplog, by_name=True) == [
        (logging.WARNING, "work: KeyError; trying again until it works"),
        (logging.INFO, "work: works again"),
    ]
    assert "secret" not in caplog.text


async def test_a_background_task_goes_on_after_any_fault_until_it_is_stopped() -> None:
    class Task(BackgroundTask):
        WHAT = "a task of a test"
        PAUSE = 0.0

        def __init__(self) -> None:
            self.turns = 0
            self.enough = asyncio.Event()

        async def _turn(self) -> None:
            self.turns += 1
            if self.turns == 3:
                self.enough.set()
                await asyncio.Event().wait()
            raise ZeroDivisionError

    task = Task()
    await task.start()
    async with asyncio.timeout(60):
        await task.enough.wait()
    await task.stop()
    assert task.turns == 3


async def test_a_cancellation_that_a_turn_catches_ends_the_task_all_the_same() -> None:
    started = asyncio.Event()

    async def turn() -> None:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    task = asyncio.create_task(run_forever(turn, what="test"))
    await started.wait()
    task.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([task])
    assert task.cancelled()


async def test_a_cancelled_future_of_another_is_a_fault_as_any() -> None:
    """A task that is waited for together with others may be cancelled by one of them."""
    before, turns = FAULTS["test"], 0

    async def turn() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    await run_forever(turn, what="test", until=lambda: turns == 2, pause=0.0)
    assert FAULTS["test"] == before + 1


async def test_a_fault_that_is_no_exception_does_not_end_the_task() -> None:
    class Panic(BaseException):
        """A panic, as raised by libraries written in Rust."""

    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise Panic

    await run_forever(turn, what="test", until=lambda: turns == 2, pause=0.0)
    assert turns == 2


async def test_the_end_of_a_task_by_a_fault_is_reported_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise KeyError("x")

    before = FAULTS["test"]
    task = start_task(fails(), what="test")
    await asyncio.wait({task})
    assert FAULTS["test"] == before + 1
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "test: a task has ended by a fault")
    ]
    assert caplog.records[0].exc_info is not None
