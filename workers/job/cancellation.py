"""Cancellation of a step, and of the coroutine that it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any, TypeVar

T = TypeVar("T")


class StepCancelled(Exception):
    """Raised when the step was cancelled."""


class Cancellation:
    """A thread-safe cancellation flag."""

    def __init__(self) -> None:
        self._event = Event()
        self._lock = Lock()
        self._acts: list[Callable[[], object]] = []

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        with self._lock:
            self._event.set()
            for act in self._acts:
                act()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in a new event loop. A cancellation ends it and raises `StepCancelled`."""
        try:
            return asyncio.run(self._cancellable(work))
        except asyncio.CancelledError:
            raise StepCancelled from None

    async def _cancellable(self, work: Coroutine[Any, Any, T]) -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._on_request(lambda: loop.call_soon_threadsafe(task.cancel)):
            return await work

    @contextmanager
    def _on_request(self, act: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            self._acts.append(act)
            if self._event.is_set():
                act()
        try:
            yield
        finally:
            with self._lock:
                self._acts.remove(act)
