"""The wish that a step end, and how it reaches a step that waits for something. Issue 7, point 4."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any, TypeVar

T = TypeVar("T")


class StepCancelled(Exception):
    """The step was asked to end, and does."""


class Cancellation:
    """Asked for by one thread, minded by another."""

    def __init__(self) -> None:
        self._event = Event()
        self._lock = Lock()
        self._acts: list[Callable[[], object]] = []

    @property
    def asked(self) -> bool:
        return self._event.is_set()

    def ask(self) -> None:
        with self._lock:
            self._event.set()
            for act in self._acts:
                act()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` to its end, in a loop of its own, or ends it and raises `StepCancelled`."""
        try:
            return asyncio.run(self._minded(work))
        except asyncio.CancelledError:
            raise StepCancelled from None

    async def _minded(self, work: Coroutine[Any, Any, T]) -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._when_asked(lambda: loop.call_soon_threadsafe(task.cancel)):
            return await work

    @contextmanager
    def _when_asked(self, act: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            self._acts.append(act)
            if self._event.is_set():
                act()
        try:
            yield
        finally:
            with self._lock:
                self._acts.remove(act)
