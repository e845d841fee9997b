"""Reports of steps that end within a moment of each other are released together. The test sets the time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from workers.job.step_executor import ReportBatches

_MOST_TURNS = 5


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock does not move until it is set."""

    now = 0.0

    def time(self) -> float:
        return self.now

    async def at(self, now: float) -> None:
        self.now = now
        for _ in range(_MOST_TURNS):
            await asyncio.sleep(0)


def _run(test: Callable[[_Loop], Awaitable[None]]) -> None:
    loop = _Loop()

    async def with_loop() -> None:
        await test(loop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(with_loop())


async def _reports(batches: ReportBatches, count: int) -> list[asyncio.Task[None]]:
    """Make reports at the current time."""
    reports = [asyncio.create_task(batches.turn()) for _ in range(count)]
    await asyncio.sleep(0)
    return reports


def _done(reports: list[asyncio.Task[None]]) -> list[bool]:
    return [report.done() for report in reports]


def test_a_report_after_a_quiet_moment_does_not_wait_and_those_after_it_go_on_together() -> None:
    async def test(loop: _Loop) -> None:
        reports = await _reports(ReportBatches(interval=1.0), 3)
        await loop.at(0.9)
        assert _done(reports) == [True, False, False]
        await loop.at(1.0)
        assert _done(reports) == [True, True, True]

    _run(test)


def test_the_next_batch_is_an_interval_later() -> None:
    async def test(loop: _Loop) -> None:
        batches = ReportBatches(interval=1.0)
        await _reports(batches, 2)
        await loop.at(1.5)
        late = await _reports(batches, 1)
        await loop.at(2.4)
        assert _done(late) == [False]
        await loop.at(2.5)
        assert _done(late) == [True]

    _run(test)


def test_after_a_quiet_interval_nothing_waits() -> None:
    async def test(loop: _Loop) -> None:
        batches = ReportBatches(interval=1.0)
        await _reports(batches, 2)
        await loop.at(1.0)
        await loop.at(2.0)
        alone = await _reports(batches, 1)
        await loop.at(2.0)
        assert _done(alone) == [True]

    _run(test)


def test_a_report_that_is_cancelled_does_not_hold_up_the_others() -> None:
    async def test(loop: _Loop) -> None:
        _, cancelled, other = await _reports(ReportBatches(interval=1.0), 3)
        await loop.at(0.5)
        cancelled.cancel()
        with suppress(asyncio.CancelledError):
            await cancelled
        await loop.at(1.0)
        assert other.done()

    _run(test)
