"""A thread for the blocking calls of Kafka clients, each with a deadline.

kafka-python blocks, and some of its waits have no limit. A late call is abandoned with its thread and its clients: the caller makes
new clients in a new thread. The thread is a daemon, so a call that never returns does not keep the process from ending.
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
"""The time limit for a call, in seconds."""


class ClientThread:
    """Runs calls one after another."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, act: Callable[[], T], *, seconds: float = DEADLINE) -> T:
        """Return the result of a call. Raises `Unavailable` when it takes longer; the thread must then be ended, because it may be
        stuck."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def call() -> None:
            try:
                result = act()
            except BaseException as fault:
                _set_answer(loop, answer, fault=fault)
            else:
                _set_answer(loop, answer, result)

        self._calls.put(call)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise Unavailable(f"Kafka did not answer within {seconds:.0f} s") from None

    def end(self, *last: Callable[[], object]) -> None:
        """End the thread when its call returns, after these last calls. This does not wait."""
        for act in last:
            self._calls.put(partial(suppressed, act))
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def suppressed(act: Callable[[], object]) -> None:
    """Call without exceptions. It is for clients that are thrown away: an exception at their end is of no use."""
    with suppress(Exception):
        act()


def _set_answer(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T], result: T | None = None, fault: BaseException | None = None
) -> None:
    def set_answer() -> None:
        if answer.done():
            return
        if fault is not None:
            answer.set_exception(fault)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    with suppress(RuntimeError):  # the loop is closed: no caller waits any more
        loop.call_soon_threadsafe(set_answer)
