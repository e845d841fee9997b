"""Runs the tests in several processes: forks of the one that has imported and collected them.

To import and to collect costs seven seconds of processor time, which is paid once. The parent hands out groups of tests (files, see
`tests.support.distribution`) and shows the reports that its children send. Fixtures of the session are made in each child.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NoReturn

import pytest

from tests.support.distribution import START_PRODUCTS, groups
from tests.support.forks import start_fork_server

_ASK: Final = "ask"
"""A child asks for its next group. Everything else that it sends is the name of a hook and its arguments."""
_ENDED: Final = "ended"
"""The message that stands for a child which no longer sends anything."""
_ENDS_WITHIN: Final = 10.0
"""Seconds that a child which was aborted has for its traceback."""
_ONLY_IN_PARENT: Final = ("terminalreporter", "logxml")
"""Plugins that show what the parent is told."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="run the tests in so many processes (1: in this one)")
    parser.addoption(
        "--silence",
        type=float,
        default=300,
        help="with several processes: seconds after which one that reports no test is aborted, with a traceback of its threads",
    )


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in processes. Return None to leave it to pytest, which runs all tests in this process."""
    config = session.config
    if config.getoption("processes") < 2 or session.testsfailed or config.option.collectonly:
        return None
    Run(session).run(config.getoption("processes"))
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Child:
    """A process that runs tests, as its parent knows it."""

    def __init__(self, pid: int, channel: Connection) -> None:
        self.pid = pid
        self.channel = channel
        self.todo: list[int] = []
        self.heard_at = time.monotonic()
        self.aborted_at: float | None = None

    def hand(self, group: Sequence[int]) -> None:
        self.todo += group
        with suppress(BrokenPipeError):  # it has ended, which is noticed next
            self.channel.send(group)

    def heard(self) -> tuple[str, dict[str, Any]]:
        self.heard_at = time.monotonic()
        try:
            name, given = self.channel.recv()
        except (EOFError, ConnectionResetError):
            return _ENDED, {}
        return name, given


class Run:
    """The side of the parent."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        self._places = {item.nodeid: place for place, item in enumerate(session.items)}
        self._waiting: deque[Sequence[int]] = deque(groups(session.items))
        self._children: list[Child] = []

    @property
    def _stopped(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def run(self, processes: int) -> None:
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # each process would empty it
        if any(item.nodeid.startswith(START_PRODUCTS) for item in self._session.items):
            start_fork_server()
        try:
            for _ in range(min(processes, len(self._waiting))):
                self._fork()
            while self._children:
                heard = wait([child.channel for child in self._children], timeout=1)
                for child in [child for child in self._children if child.channel in heard]:
                    self._hear(child)
                self._look()
            assert self._stopped or not self._waiting, "not all tests were run"
        finally:
            self._end()

    def _fork(self) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            for channel in (ours, *(child.channel for child in self._children)):
                channel.close()
            Worker(self._session, theirs).run()
        theirs.close()
        self._children.append(Child(pid, ours))

    def _look(self) -> None:
        """A child that is stuck would keep the run for ever, and so would a process of a test that holds its channel open."""
        now, silence = time.monotonic(), self._session.config.getoption("silence")
        for child in list(self._children):
            if child.aborted_at is None and now - child.heard_at > silence:
                child.aborted_at = now
                os.kill(child.pid, signal.SIGABRT)  # pytest's handler writes a traceback of all threads
            elif child.aborted_at is not None and now - child.aborted_at > _ENDS_WITHIN:
                os.kill(child.pid, signal.SIGKILL)
                self._ended(child)

    def _hear(self, child: Child) -> None:
        name, given = child.heard()
        if name == _ENDED:
            self._ended(child)
        elif name == _ASK:
            child.hand(self._waiting.popleft() if self._waiting and not self._stopped else [])
        elif name == "pytest_runtest_logfinish":
            child.todo.remove(self._places[given["nodeid"]])
        elif name == "pytest_runtest_logreport":
            report = self._hook.pytest_report_from_serializable(config=self._session.config, data=given["report"])
            self._hook.pytest_runtest_logreport(report=report)
            if self._stopped:
                self._interrupt()
        elif name == "pytest_warning_recorded":
            self._hook.pytest_warning_recorded.call_historic(kwargs=given)

    def _ended(self, child: Child) -> None:
        """A process that ends while it has tests fails the first one. Another process runs the others."""
        self._children.remove(child)
        child.channel.close()
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        if child.todo and not self._stopped:
            first, *others = child.todo
            self._fail(self._session.items[first], f"the process of the test ended with {status}")
            if others:
                self._waiting.appendleft(others)
            if self._waiting:
                self._fork()
        elif status:
            self._session.shouldfail = f"a process of the tests ended with {status}"

    def _fail(self, item: pytest.Item, why: str) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self._hook.pytest_runtest_logreport(report=report)

    def _interrupt(self) -> None:
        for child in self._children:
            os.kill(child.pid, signal.SIGINT)

    def _end(self) -> None:
        """After an interruption, which a terminal sends to all, children tear their fixtures down."""
        for child in self._children:
            child.channel.close()
        for child in self._children:
            os.waitpid(child.pid, 0)


class Worker:
    """The side of a child."""

    def __init__(self, session: pytest.Session, channel: Connection) -> None:
        self._session = session
        self._channel = channel
        self._started = False

    def run(self) -> NoReturn:
        status = 1
        try:
            self._detach()
            self._tests()
            self._session.config._ensure_unconfigure()
            atexit._run_exitfuncs()
            status = 0
        except BaseException:  # whatever it is, nothing above may go on: this is a copy of the parent
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)

    def _detach(self) -> None:
        """Redirect the output of this process to its own files while it is captured, and otherwise discard it."""
        plugins = self._session.config.pluginmanager
        for name in _ONLY_IN_PARENT:
            if plugins.has_plugin(name):
                plugins.unregister(name=name)
        capture: Any = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        plugins.register(self, "worker")  # and is told all warnings of before, which the parent has
        self._started = True

    def _tests(self) -> None:
        session = self._session
        try:
            numbers = self._numbers()
            number = next(numbers, None)
            while number is not None and not (session.shouldfail or session.shouldstop):
                following = next(numbers, None)
                after = None if following is None else session.items[following]
                item = session.items[number]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                number = following
        except (KeyboardInterrupt, BrokenPipeError, EOFError):  # asked to stop, or the parent is gone
            pass
        finally:
            session._setupstate.teardown_exact(None)

    def _numbers(self) -> Iterator[int]:
        while True:
            self._tell(_ASK)
            group = self._channel.recv()
            if not group:
                return
            yield from group

    def _tell(self, name: str, **given: object) -> None:
        self._channel.send((name, given))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self._session.config
        self._tell("pytest_runtest_logreport", report=config.hook.pytest_report_to_serializable(config=config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._tell("pytest_runtest_logfinish", nodeid=nodeid)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        if not self._started:
            return
        given = warning_message
        copy = warnings.WarningMessage(str(given.message), given.category, given.filename, given.lineno)
        self._tell("pytest_warning_recorded", warning_message=copy, when=when, nodeid=nodeid, location=location)
