"""The workers of one process: the order in which they start and stop, also after a start that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from workers.wiring import SharedWorkers, Worker, WorkerContext, Workers


class Recorded:
    """A worker that notes when it is started and stopped."""

    def __init__(self, name: str, notes: list[str], *, fails: bool = False, stays: bool = False, turns: int = 0) -> None:
        self._name = name
        self._notes = notes
        self._fails = fails
        self._stays = stays
        self._turns = turns

    async def start(self) -> None:
        if self._fails:
            raise RuntimeError(self._name)
        self._notes.append(f"+{self._name}")

    async def stop(self) -> None:
        if self._stays:
            raise RuntimeError(self._name)
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._notes.append(f"-{self._name}")


class Pool(Recorded):
    pass


class Hub(Recorded):
    pass


class Context:
    def __init__(self, log_watcher: Recorded) -> None:
        self.log_watcher = log_watcher


def workers(notes: list[str], *, fails: bool = False, stays: bool = False) -> Workers:
    def first(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
        shared.worker(Pool, lambda: Pool("pool", notes))
        shared.worker(Hub, lambda: Hub("hub", notes))
        return [Recorded("first", notes, stays=stays)]

    def second(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
        shared.worker(Pool, lambda: Pool("another pool", notes))
        return [Recorded("second", notes, fails=fails, turns=10)]

    context: Any = Context(Recorded("log watcher", notes))
    return Workers(cast(WorkerContext, context), {"first": first, "second": second})


async def test_what_roles_share_starts_once_before_them_and_stops_after_them() -> None:
    notes: list[str] = []
    made = workers(notes)
    assert made.names == ("first", "second")
    await made.start()
    assert notes == ["+log watcher", "+pool", "+hub", "+first", "+second"]
    notes.clear()
    await made.stop()
    assert notes == ["-first", "-second", "-hub", "-pool", "-log watcher"]


async def test_after_a_start_that_failed_everything_that_was_begun_is_stopped() -> None:
    notes: list[str] = []
    made = workers(notes, fails=True)
    with pytest.raises(RuntimeError, match="second"):
        await made.start()
    notes.clear()
    await made.stop()
    assert notes == ["-first", "-second", "-hub", "-pool", "-log watcher"]


async def test_a_worker_that_cannot_be_stopped_does_not_keep_the_others_from_it() -> None:
    notes: list[str] = []
    made = workers(notes, stays=True)
    await made.start()
    notes.clear()
    with pytest.raises(RuntimeError, match="first"):
        await made.stop()
    assert notes == ["-second", "-hub", "-pool", "-log watcher"]


async def test_an_object_that_roles_share_and_that_is_no_worker_is_not_started() -> None:
    shared = SharedWorkers()
    assert shared.get(list, list) is shared.get(list, list)
    assert shared.workers == []
