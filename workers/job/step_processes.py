"""The pool of processes that run the steps of jobs: started before they are needed, and killed at once when they must end.

The worker's event loop renews leases while a step runs elsewhere, so no step can prevent that. And whatever a step does, or fails
to do when it is asked to end, its process group can be killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from asyncio import StreamReader, StreamWriter
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from time import monotonic
from typing import Final

from pydantic import TypeAdapter, ValidationError

from domain.job.values import Severity
from projections.kernel.background_task import start_forever, start_task
from workers.job.host.frames import HEAD, Frame, Garbled, length, pack, unpack
from workers.job.media_paths import JOBS
from workers.job.protocol import Answer, Finished, StepFailure, StepListener, StepOrder
from workers.kernel.confinement import Confinement, environment
from workers.kernel.fork_client import ForkedProcess, ForkServer
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.shortage import SHORTAGES
from workers.ports.outbound import DownloadLimits
from workers.ports.targets import TargetSettings

_log = logging.getLogger(__name__)

_STARTING: Final = 60.0
_PATIENCE: Final = 0.15
_ENOUGH: Final = 0.5
_LATER: Final = 0.5
_BEATS: Final = 6
"""Messages to each process within the time after which it takes the worker for dead."""
_DRAIN: Final = 1.0
_TARGETS: Final = TypeAdapter(TargetSettings)
_FINISHED: Final = TypeAdapter(Finished)
_FAILED: Final = TypeAdapter(StepFailure)
_ALIVE: Final = {"kind": "alive"}
_CANCEL: Final = {"kind": "cancel"}
_STOPPED: Final = StepFailure("The worker was stopped.", interrupted=True)


class ProcessPool:
    """A pool of as many processes as the largest number of steps that ran at the same time. With `eager`, one starts before the
    first step."""

    def __init__(
        self,
        *,
        fork_server: ForkServer,
        media_root: Path,
        allow: Sequence[IPv4Network | IPv6Network],
        origin: str | None = None,
        targets: TargetSettings,
        downloads: DownloadLimits,
        programs: Mapping[str, str],
        fetches: bool,
        lease_seconds: float,
        confinement: Confinement,
        eager: bool,
        metrics: WorkerMetrics,
    ) -> None:
        self._fork_server = fork_server
        self._metrics = metrics
        self._confinement = confinement
        self._eager = eager
        self._warned: Sequence[str] = ()
        self._settings = {
            "kind": "settings",
            "media_root": str(media_root.absolute()),
            "allow": [str(network) for network in allow],
            "origin": origin,
            "targets": _TARGETS.dump_python(targets, mode="json"),
            "downloads": asdict(downloads),
            "programs": dict(programs),
            "fetches": fetches,
            "lease_seconds": lease_seconds,
        }
        self._media_root = media_root
        self._lease_seconds = lease_seconds
        self._idle: list[StepProcess] = []
        self._all: set[StepProcess] = set()
        self._busy: set[StepProcess] = set()
        self._waiting: deque[_Waiting] = deque()
        self._wanted = asyncio.Event()
        self._started_at = self._freed_at = float("-inf")
        self._usual_seconds = self._start_seconds = 0.0
        self._draining = self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the first process in the background, if the pool is eager."""
        self._tasks = [start_forever(turn, what="step processes") for turn in (self._beat, self._start_more)]

    async def stop(self) -> None:
        """Kill all processes with their steps."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_waiters()
        for process in self._all:
            process.kill()
        await asyncio.gather(*(process.dead.wait() for process in self._all))
        for process in self._all:
            process.close()

    def drain(self) -> None:
        """Cancel the steps that run, and those that start after this."""
        self._draining = True
        for process in self._busy:
            process.send(_CANCEL)

    async def run(self, order: StepOrder, listener: StepListener, *, answers: Mapping[str, Answer]) -> Finished | StepFailure:
        """Run one step to its end. If this is cancelled, the step's process group is killed."""
        outcome = None
        while outcome is None:  # the process had other directories than those that exist now
            outcome = await self._run(order, listener, answers=answers)
        return outcome

    async def _run(
        self, order: StepOrder, listener: StepListener, *, answers: Mapping[str, Answer]
    ) -> Finished | StepFailure | None:
        """Run a step; return None if the process did not begin the step, and runs no further steps."""
        try:
            if self._stopping:
                return _STOPPED
            await self._make_folder()
            process = self._idle_process() or await self._next()
        except _NotStarted as fault:
            return _STOPPED if self._stopping else StepFailure(str(fault))
        self._busy.add(process)
        begun = monotonic()
        try:
            process.send({"kind": "order", "order": order})
            if self._draining:
                process.send(_CANCEL)
            outcome = await process.wait_for_outcome(listener, answers=answers)
        except BaseException:
            process.kill()
            raise
        finally:
            self._busy.discard(process)
        if process.stale:
            process.kill()
            return None
        seconds = monotonic() - begun if process.seconds is None else process.seconds
        self._usual_seconds += (seconds - self._usual_seconds) / 8
        if process.fit:
            self._free(process)
        else:
            process.kill()
        return _STOPPED if outcome is None and self._stopping else outcome or process.exit_reason()

    def _idle_process(self) -> StepProcess | None:
        while self._idle:
            process = self._idle.pop()
            if not process.dead.is_set():
                return process
        return None

    def _free(self, process: StepProcess) -> None:
        """Give the process to the run that has waited longest, or keep it idle."""
        self._freed_at = monotonic()
        longest = self._longest()
        if longest is None:
            self._idle.append(process)
        else:
            longest.process.set_result(process)

    def _longest(self) -> _Waiting | None:
        while self._waiting:
            if not self._waiting[0].process.done():
                return self._waiting[0]
            self._waiting.popleft()
        return None

    async def _next(self) -> StepProcess:
        """Wait for the next process that becomes free or is started."""
        process: asyncio.Future[StepProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(process))
        self._wanted.set()
        try:
            return await process
        except asyncio.CancelledError:
            if process.done() and not process.cancelled() and process.exception() is None:
                self._free(process.result())
            raise

    async def _start_more(self) -> None:
        """Start one process at a time, and only for runs that have waited a moment: most steps end sooner than a process starts."""
        longest = self._longest()
        if longest is None and (self._all or not self._eager):
            self._wanted.clear()
            await self._wanted.wait()
        elif longest is not None and self._alive and self._may_wait(longest):
            await asyncio.sleep(_PATIENCE / 4)
        else:
            await self._start_one()

    @property
    def _alive(self) -> int:
        """The number of live processes. One that was just given to a run is not among the busy ones yet."""
        return sum(not process.dead.is_set() for process in self._all)

    def _may_wait(self, longest: _Waiting) -> bool:
        """Return True if, by the usual durations, the waiting runs will probably get a process before a new one could start."""
        now, patience = monotonic(), max(_ENOUGH, self._start_seconds)
        if now - max(longest.since, self._started_at) < _PATIENCE:
            return True
        soon = len(self._waiting) * self._usual_seconds / self._alive < patience
        return soon and now - self._freed_at < patience

    async def _start_one(self) -> None:
        begun = monotonic()
        try:
            process = await self._start_process()
            self._started_at = monotonic()
            self._start_seconds = self._started_at - begun
            self._free(process)
        except _NotStarted:
            self._fail_waiters()
            await asyncio.sleep(_LATER)

    def _fail_waiters(self) -> None:
        while (longest := self._longest()) is not None:
            longest.process.set_exception(_NotStarted())

    async def _start_process(self) -> StepProcess:
        await self._make_folder()
        process = await StepProcess.fork(self._fork_server, self._confinement)
        self._all = {item for item in self._all if not item.closed} | {process}
        try:
            if self._stopping:
                raise _NotStarted
            async with asyncio.timeout(_STARTING):
                process.send(self._settings)
                self._warn(await process.wait_until_ready())
        except (TimeoutError, _NotStarted):
            process.kill()
            raise _NotStarted from None
        except BaseException:
            process.kill()
            raise
        return process

    async def _make_folder(self) -> None:
        """Make the folder that steps work in: they may write below it, and nowhere else.

        If steps have an account of their own, the folder is made together with that account.
        """
        if self._confinement.uid is None and not _is_folder(self._media_root / JOBS):
            with suppress(OSError):  # the step reports the reason
                await asyncio.to_thread((self._media_root / JOBS).mkdir, 0o700, parents=True, exist_ok=True)

    def _warn(self, lacks: Sequence[str]) -> None:
        """Warn once of each protection that processes of steps lack."""
        for lack in lacks:
            if lack not in self._warned:
                self._warned = (*self._warned, lack)
                self._metrics.confined_less(lack)
                _log.warning(lack)

    @property
    def warning(self) -> str | None:
        """A text about the protections that this machine lacks; None if it lacks none."""
        return "; ".join(self._warned) or None

    async def _beat(self) -> None:
        for process in self._all:
            process.send(_ALIVE)
        await asyncio.sleep(self._lease_seconds / _BEATS)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A run that waits for a process, and since when, of `time.monotonic`."""

    process: asyncio.Future[StepProcess]
    since: float = field(default_factory=monotonic)


class _NotStarted(Exception):
    def __init__(self) -> None:
        super().__init__("No process for the step could be started.")


class StepProcess:
    """A process of steps, the leader of its own session and process group."""

    def __init__(self, process: ForkedProcess, reader: StreamReader, *, writer: StreamWriter) -> None:
        self._process = process
        self._status = 0
        self._reader = reader
        self._writer = writer
        self.dead = asyncio.Event()
        self.fit = False
        """True if it may run another step."""
        self.stale = False
        """True if it refused to run a step, since it cannot reach the media any more."""
        self.seconds: float | None = None
        """The duration of the last step, as the process measured it: without the time until the worker notices its end."""
        self.closed = False
        self._ending = start_task(self._end(), what="end of a step's process")

    @classmethod
    async def fork(cls, server: ForkServer, confinement: Confinement) -> StepProcess:
        """Fork a process from the server. If this is cancelled, a process that exists already ends through its channel.

        Raises `OSError` in a shortage of the machine: then the runs wait, and `_start_more` is called again.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            try:
                return cls(await server.fork(asdict(confinement), [theirs.fileno()]), reader, writer=writer)
            except BaseException as fault:
                writer.close()
                if isinstance(fault, OSError) and fault.errno not in SHORTAGES:
                    raise _NotStarted from None
                raise

    def send(self, frame: Frame) -> None:
        if not self._writer.is_closing():
            self._writer.write(pack(frame))

    async def wait_until_ready(self) -> Sequence[str]:
        """Wait until the process is ready, and return the protections that it lacks, in sentences.

        Steps have not run in it yet, so the answer can be trusted.
        """
        frame = await self._next()
        if frame is None:
            raise _NotStarted
        return [str(lack) for lack in frame.get("lacks", ())]

    async def wait_for_outcome(self, listener: StepListener, *, answers: Mapping[str, Answer]) -> Finished | StepFailure | None:
        """Wait until the step ends, and return its outcome; None if its process died."""
        self.fit, self.seconds = False, None
        answering: asyncio.Task[None] | None = None
        try:
            while (frame := await self._next()) is not None:
                match frame:
                    case {"kind": "progress", "fraction": float(fraction), "message": str(message)}:
                        listener.progress(fraction, message)
                    case {"kind": "log", "severity": int(severity), "message": str(message)}:
                        listener.log(Severity(severity), message)
                    case {"kind": str(kind), "number": int()} if kind in answers and (answering is None or answering.done()):
                        answering = start_task(self._answer(frame, answers[kind]), what="answers to steps")
                    case {"kind": str(kind), "number": int(number)} if kind not in answers:
                        self.send({"refused": f"The worker does not answer {kind}.", "kind": "answer", "number": number})
                    case {"kind": "stale"}:
                        self.stale = True
                        return None
                    case {"kind": "ended"}:
                        self.fit = frame.get("fit") is True
                        self.seconds = frame.get("seconds")
                        return _end_in(frame)
        finally:
            if answering is not None:
                answering.cancel()
        self.kill()
        await self.dead.wait()
        return None

    async def _answer(self, question: Frame, answer: Answer) -> None:
        self.send({**await answer(question), "kind": "answer", "number": question["number"]})

    async def _next(self) -> Frame | None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, Garbled):
            return unpack(await self._reader.readexactly(length(await self._reader.readexactly(HEAD))))
        return None

    def kill(self) -> None:
        """Kill the process; the fork server then kills its process group."""
        self._process.send_signal(signal.SIGKILL)

    def exit_reason(self) -> StepFailure:
        """Return the failure of a step whose process ended."""
        how = f"by signal {signal.Signals(-self._status).name}" if self._status < 0 else f"with status {self._status}"
        return StepFailure(f"The process of the step ended {how}.")

    async def _end(self) -> None:
        self._status = await self._process.wait()
        if self._process.orphaned:
            with suppress(ProcessLookupError):  # a group keeps its number while it has a member
                os.killpg(self._process.pid, signal.SIGKILL)
        self.dead.set()
        # The last messages may still be read. A process that left the group may keep the other end open.
        asyncio.get_running_loop().call_later(_DRAIN, self.close)

    def close(self) -> None:
        """Close the channel; nothing more is read from the process."""
        self.closed = True
        self._writer.transport.abort()


def _is_folder(path: Path) -> bool:
    return path.is_dir()


def _end_in(frame: Frame) -> Finished | StepFailure:
    try:
        if "finished" in frame:
            return _FINISHED.validate_python(frame["finished"])
        return _FAILED.validate_python(frame.get("failed"))
    except ValidationError:
        return StepFailure("The step's process did not report how it ended.")


def step_fork_server() -> ForkServer:
    """Make a fork server whose processes have the module path of the worker and none of its settings.

    Their standard output is the worker's standard error.
    """
    return ForkServer("workers.job.host", environment=environment(), output=2)
