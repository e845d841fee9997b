"""A thread for the blocking calls of Kafka clients, each with a deadline.

kafka-python blocks, and some of its waits have no limit. A call that is late is given up with its thread and its clients: the
caller makes fresh ones in a fresh thread. The thread is a daemon, so one that never returns does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeVar

from domain.kernel.errors import Unavailable

T = TypeVar("T")
DEADLINE: Final = 10.0
"""Seconds that one call may take."""


class ClientThread:
    """Runs calls one after another."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, act: Callable[[], T], *, seconds: float = DEADLINE) -> T:
        """The result of a call. Raises `Unavailable` when it takes longer; then the thread must be ended, for it may be stuck."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def call() -> None:
            try:
                result = act()
            except BaseException as fault:
                _tell(loop, answer, fault=fault)
            else:
                _tell(loop, answer, result)

        self._calls.put(call)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise Unavailable(f"Kafka did not answer within {seconds:.0f} s") from None

    def end(self, *last: Callable[[], object]) -> None:
        """End the thread as soon as its call returns, after last calls; nobody waits for it."""
        for act in last:
            self._calls.put(partial(suppressed, act))
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def suppressed(act: Callable[[], object]) -> None:
    """For clients that are thrown away: whatever their end raises, nobody can use it."""
    with suppress(Exception):
        act()


def _tell(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T], result: T | None = None, fault: BaseException | None = None
) -> None:
    def tell() -> None:
        if answer.done():
            return
        if fault is not None:
            answer.set_exception(fault)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(tell)
