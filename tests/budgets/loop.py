"""An event loop that counts what wakes it, and whose clock a test moves.

While the clock is stopped, no timer comes due: what a request or an event causes is then all that happens. A test lets time pass by
`elapse`: whenever nothing is under way any more, the clock goes to the next timer at once. Ten seconds of an idle product therefore
take as long as its work, and are the same on a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final

_GRACE: Final = 0.002
"""Seconds between two looks whether other processes have finished."""
_STILL: Final = 250
"""The number of looks in a row that find nothing running, after which the files for which the loop waits count as idle ones. A file
that is not known yet belongs to a process or a connection that began meanwhile, or to a statement that waits for a lock."""
_READ: Final = 4096
_ABOUT_TO_RUN: Final = b"RD"
"""The states of processes that run, wait for a processor, or wait for the disk."""
_SWITCHES: Final = 75
"""The bytes at the end of the state of a thread that have the numbers of its switches."""
_real_time: Final = time.monotonic


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _READ)
    finally:
        os.close(file)


class _Processes:
    """The processes that some processes have started, and those that these have started. Calls few functions of Python outside this
    module, which would be counted."""

    def __init__(self, roots: Collection[int]) -> None:
        self._roots = roots
        self._files: dict[int, int] = {}
        """The open files with the states of threads, since they are read many times a second."""

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)

    @property
    def are_at_rest(self) -> bool:
        """Return True if no thread was running at one moment: two looks at all states are equal, and these contain the
        number of switches of each thread. One look could miss a process that is woken by another one meanwhile."""
        states = self._look()
        return states is not None and self._find_begun() and states == self._look()

    def _look(self) -> list[bytes] | None:
        """Return the states of all threads; None if one is running."""
        states: list[bytes] = []
        for thread, file in list(self._files.items()):
            try:
                state = os.pread(file, _READ, 0)
            except ProcessLookupError:
                os.close(self._files.pop(thread))
                continue
            place = state.index(b"State:") + 7
            if state[place] in _ABOUT_TO_RUN:
                return None
            states.append(state[-_SWITCHES:])
        return states

    def _find_begun(self) -> bool:
        """Return False if threads have begun since the last call."""
        before = len(self._files)
        for root in self._roots:
            self._find(root, is_root=True)
        return len(self._files) == before

    def _find(self, process: int, *, is_root: bool = False) -> None:
        try:
            for task in map(int, os.listdir(f"/proc/{process}/task")):
                if not (is_root or task in self._files):
                    self._files[task] = os.open(f"/proc/{process}/task/{task}/status", os.O_RDONLY | os.O_CLOEXEC)
                for child in map(int, _read(f"/proc/{process}/task/{task}/children").split()):
                    self._find(child)
        except OSError:  # it has ended
            return


class _Selector(selectors.EpollSelector):
    """A selector that counts the events of files, and asks the loop what to do when no file is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self.uncounted: set[int] = set()
        self.always: set[int] | None = None
        """The files that were registered each time that the loop waited, since this was last set to None."""
        self.waits: Callable[[float | None], bool]
        """Called when no file is ready. Returns False to wait for one, however long."""
        self.is_stopped: Callable[[], bool]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            if self.is_stopped():
                return self._counted(self._select_stopped(timeout))
            self.always = self.files if self.always is None else self.always & self.files
        return self._counted(super().select(timeout))

    @property
    def files(self) -> set[int]:
        """The files for which the loop waits at present."""
        return set(self._fd_to_key)  # type: ignore[attr-defined]  # without a call that would count

    def _select_stopped(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        while not (ready := super().select(0)):
            if self.waits(timeout):
                break
            if ready := super().select(_GRACE):
                break
        return ready

    def _counted(self, ready: list[tuple[selectors.SelectorKey, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        self.events += sum(key.fd not in self.uncounted for key, _ in ready)
        return ready


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts wake-ups: files that became ready, and timers that came due.

    The product runs on uvloop, which cannot be counted from Python. Unlike the turns of a loop, wake-ups do not depend on how many
    of them the loop finds at once.

    """

    def __init__(self) -> None:
        self._counted = _Selector()
        self._counted.waits, self._counted.is_stopped = self._is_at_rest, lambda: self._stopped
        self._stopped = self._moves = False
        self._clock = 0.0
        """The time while the clock is stopped; else what is added to the real time."""
        self._until = 0.0
        self._rest: asyncio.Future[None] | None = None
        self._timers = 0
        self._in_threads = self._still = 0
        self._watched: tuple[int, ...] = ()
        self._processes = _Processes(())
        super().__init__(self._counted)

    @property
    def wakeups(self) -> int:
        return self._counted.events + self._timers

    def time(self) -> float:
        return self._clock if self._stopped else _real_time() + self._clock

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *arguments: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._due, callback, arguments, context=context)

    def _due(self, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._timers += 1
        callback(*arguments)

    def _make_socket_transport(self, *arguments: Any, **keywords: Any) -> Any:
        """Return a transport that allocates a small buffer for each read, as uvloop does."""
        transport = super()._make_socket_transport(*arguments, **keywords)  # type: ignore[misc]
        transport.max_size = _READ
        return transport

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        self._in_threads += 1
        running = super().run_in_executor(executor, func, *args)
        running.add_done_callback(self._left_thread)
        return running

    def _left_thread(self, _: object) -> None:
        self._in_threads -= 1

    def ignore(self, file: int) -> None:
        """Do not count the events of this file."""
        self._counted.uncounted.add(file)

    def watch(self, *processes: int) -> None:
        """Something is under way while one of these processes, or one that they have started, is running."""
        self._watched = processes

    async def learn(self, seconds: float) -> None:
        """Observe for a while for which files the loop waits when nothing is under way."""
        assert not self._stopped, "the clock is stopped"
        self._counted.always = None
        await asyncio.sleep(seconds)

    @contextmanager
    def as_clock(self) -> Iterator[None]:
        """Make `time.monotonic` return the time of this loop."""
        time.monotonic = self.time
        try:
            yield
        finally:
            time.monotonic = _real_time

    @contextmanager
    def clock_stopped(self, *, moves: bool = False) -> Iterator[None]:
        """Stop the clock. If it `moves`, it goes to the next timer also while the test waits for something that needs a timer."""
        self._moves = moves
        self._clock, self._stopped = self.time(), True
        self._until = self._clock
        self._processes = _Processes(self._watched)
        try:
            yield
        finally:
            self._processes.close()
            self._clock, self._stopped = self._clock - _real_time(), False

    async def rest(self) -> None:
        """Wait until nothing is under way, without moving the clock."""
        assert self._stopped, "the clock runs"
        self._rest = self.create_future()
        await self._rest

    async def elapse(self, seconds: float) -> None:
        """Let time pass, and wait until nothing is under way."""
        assert self._stopped, "the clock runs"
        self._until = self._clock + seconds
        await self.rest()

    def _is_at_rest(self, timeout: float | None) -> bool:
        """Return True, and end the wait for a rest or move the clock, if nothing is under way."""
        if self._rest is None and not self._moves:
            return False
        if self._in_threads or not self._processes.are_at_rest or super(_Selector, self._counted).select(0):
            self._still = 0
            return False
        if not self._counted.files <= (self._counted.always or set()):
            self._still += 1
            if self._still < _STILL:
                return False
            self._counted.always = self._counted.files | (self._counted.always or set())
        self._still = 0
        following = None if timeout is None else self._clock + timeout
        if following is not None and (self._rest is None or following <= self._until):
            self._clock = following
        elif self._rest is not None:
            self._clock = self._until
            self._rest.set_result(None)
            self._rest = None
        else:
            return False
        return True
