"""The worker's side of step hosts: processes that are kept warm, told what to do, and ended at once. Issue 7, point 4.

The worker's event loop renews leases while a step runs elsewhere, so no step can keep it from that. And whatever a step
does, or does not do when it is asked to end, its process group can be killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from time import monotonic
from typing import Final

from pydantic import TypeAdapter, ValidationError

from domain.job.values import Severity
from workers.jobs.host.frames import HEAD, Frame, Garbled, length, packed, unpacked
from workers.jobs.orders import Failed, Finished, Heard, StepOrder

_STARTING: Final = 60.0
_PATIENCE: Final = 0.15
_ENOUGH: Final = 0.5
_LATER: Final = 0.5
_BEATS: Final = 6
"""So often a host hears from us within the time after which it takes us for dead."""
_LINGER: Final = 1.0
_CHANNEL: Final = 3
"""The number that the channel has in the host."""
_FINISHED: Final = TypeAdapter(Finished)
_FAILED: Final = TypeAdapter(Failed)
_ALIVE: Final = {"kind": "alive"}
_CANCEL: Final = {"kind": "cancel"}
_STOPPED: Final = Failed("The worker was stopped.", interrupted=True)


class Hosts:
    """As many hosts as there were ever steps at one time."""

    def __init__(self, *, media_root: Path, allow: Sequence[IPv4Network | IPv6Network], lease_seconds: float = 30.0) -> None:
        self._settings = {
            "kind": "settings",
            "media_root": str(media_root.absolute()),
            "allow": [str(network) for network in allow],
            "lease_seconds": lease_seconds,
        }
        self._lease_seconds = lease_seconds
        self._idle: list[Host] = []
        self._all: set[Host] = set()
        self._busy: set[Host] = set()
        self._waiting: deque[_Waiting] = deque()
        self._wanted = asyncio.Event()
        self._started_at = float("-inf")
        self._usual_seconds = 0.0
        self._draining = self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """One host is made warm meanwhile."""
        self._tasks = [asyncio.create_task(work, name="step hosts") for work in (self._beat(), self._start_more())]

    async def stop(self) -> None:
        """At once, with all steps."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._disappoint()
        for host in self._all:
            host.kill()
        await asyncio.gather(*(host.dead.wait() for host in self._all))
        for host in self._all:
            host.close()

    def drain(self) -> None:
        """Asks the steps that run, and those that begin after this, to end soon."""
        self._draining = True
        for host in self._busy:
            host.send(_CANCEL)

    async def run(self, order: StepOrder, heard: Heard) -> Finished | Failed:
        """To its end. Cancelled, it kills the step with all that it started."""
        try:
            if self._stopping:
                return _STOPPED
            host = self._warm() or await self._next()
        except _NotStarted as fault:
            return _STOPPED if self._stopping else Failed(str(fault))
        self._busy.add(host)
        begun = monotonic()
        try:
            host.send({"kind": "order", "order": order})
            if self._draining:
                host.send(_CANCEL)
            ended = await host.ended(heard)
        except BaseException:
            host.kill()
            raise
        finally:
            self._busy.discard(host)
        self._usual_seconds += (monotonic() - begun - self._usual_seconds) / 8
        if host.fit:
            self._free(host)
        else:
            host.kill()
        return _STOPPED if ended is None and self._stopping else ended or host.epitaph()

    def _warm(self) -> Host | None:
        while self._idle:
            host = self._idle.pop()
            if not host.dead.is_set():
                return host
        return None

    def _free(self, host: Host) -> None:
        """Whoever has waited longest gets it."""
        longest = self._longest()
        if longest is None:
            self._idle.append(host)
        else:
            longest.host.set_result(host)

    def _longest(self) -> _Waiting | None:
        while self._waiting:
            if not self._waiting[0].host.done():
                return self._waiting[0]
            self._waiting.popleft()
        return None

    async def _next(self) -> Host:
        """One that becomes free, or is started for it, whatever comes first."""
        host: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(host))
        self._wanted.set()
        try:
            return await host
        except asyncio.CancelledError:
            if host.done() and not host.cancelled() and host.exception() is None:
                self._free(host.result())
            raise

    async def _start_more(self) -> None:
        """One after the other, and only for those who have waited a moment: most steps are over sooner than a process starts."""
        while True:
            longest = self._longest()
            if longest is None and self._all:
                self._wanted.clear()
                await self._wanted.wait()
            elif longest is not None and self._busy and self._may_wait(longest):
                await asyncio.sleep(_PATIENCE / 4)
            else:
                await self._start_one()

    def _may_wait(self, longest: _Waiting) -> bool:
        """Whether those who wait are served soon, as steps have been lately."""
        now = monotonic()
        if now - max(longest.since, self._started_at) < _PATIENCE:
            return True
        soon = len(self._waiting) * self._usual_seconds / len(self._busy) < _PATIENCE
        return soon and now - longest.since < _ENOUGH

    async def _start_one(self) -> None:
        try:
            host = await self._started()
            self._started_at = monotonic()
            self._free(host)
        except _NotStarted:
            self._disappoint()
            await asyncio.sleep(_LATER)

    def _disappoint(self) -> None:
        while (longest := self._longest()) is not None:
            longest.host.set_exception(_NotStarted())

    async def _started(self) -> Host:
        host = await Host.spawned()
        self._all = {one for one in self._all if not one.closed} | {host}
        try:
            if self._stopping:
                raise _NotStarted
            async with asyncio.timeout(_STARTING):
                host.send(self._settings)
                await host.ready()
        except (TimeoutError, _NotStarted):
            host.kill()
            raise _NotStarted from None
        except BaseException:
            host.kill()
            raise
        return host

    async def _beat(self) -> None:
        while True:
            for host in self._all:
                host.send(_ALIVE)
            await asyncio.sleep(self._lease_seconds / _BEATS)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Somebody who needs a host, and since when, in seconds of `time.monotonic`."""

    host: asyncio.Future[Host]
    since: float = field(default_factory=monotonic)


class _NotStarted(Exception):
    def __init__(self) -> None:
        super().__init__("No process for the step could be started.")


class Host:
    """One process. It leads a session and a process group of its own."""

    def __init__(self, pid: int, reader: StreamReader, *, writer: StreamWriter) -> None:
        self._pid = pid
        self._status = 0
        self._reader = reader
        self._writer = writer
        self.dead = asyncio.Event()
        self.fit = False
        """Whether it may be given another step."""
        self.closed = False
        self._watched = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._watched, self._died)

    @classmethod
    async def spawned(cls) -> Host:
        """Nothing is awaited once there is a process: whoever waits for it may be cancelled."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            try:
                return cls(_spawn(theirs), reader, writer=writer)
            except OSError:
                writer.close()
                raise _NotStarted from None

    def send(self, frame: Frame) -> None:
        if not self._writer.is_closing():
            self._writer.write(packed(frame))

    async def ready(self) -> None:
        frame = await self._next()
        if frame is None:
            raise _NotStarted

    async def ended(self, heard: Heard) -> Finished | Failed | None:
        """How the step ended; None when its process did."""
        self.fit = False
        while (frame := await self._next()) is not None:
            match frame:
                case {"kind": "progress", "fraction": float(fraction), "message": str(message)}:
                    heard.progress(fraction, message)
                case {"kind": "log", "severity": int(severity), "message": str(message)}:
                    heard.log(Severity(severity), message)
                case {"kind": "ended"}:
                    self.fit = frame.get("fit") is True
                    return _end_in(frame)
        self.kill()
        await self.dead.wait()
        return None

    async def _next(self) -> Frame | None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, Garbled):
            return unpacked(await self._reader.readexactly(length(await self._reader.readexactly(HEAD))))
        return None

    def kill(self) -> None:
        """With all that it started. Until it is put away in `_died`, nobody else can have its number."""
        if not self.dead.is_set():
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def epitaph(self) -> Failed:
        """Why its process ended."""
        how = f"by signal {signal.Signals(-self._status).name}" if self._status < 0 else f"with status {self._status}"
        return Failed(f"The process of the step ended {how}.")

    def _died(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._watched)
        os.close(self._watched)
        self.kill()
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self.dead.set()
        # What it said last may still be read. One who left the group may hold the other end open.
        loop.call_later(_LINGER, self.close)

    def close(self) -> None:
        """Nothing more is heard of it."""
        self.closed = True
        self._writer.transport.abort()


def _end_in(frame: Frame) -> Finished | Failed:
    try:
        if "finished" in frame:
            return _FINISHED.validate_python(frame["finished"])
        return _FAILED.validate_python(frame.get("failed"))
    except ValidationError:
        return Failed("The step's process did not say how it ended.")


def _spawn(channel: socket.socket) -> int:
    """Its number. With our path of modules, and none of our settings. What a step prints goes where our log goes."""
    environment = {
        "PATH": os.pathsep.join(os.get_exec_path()),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
    }
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "workers.jobs.host", str(_CHANNEL)],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
            (os.POSIX_SPAWN_DUP2, channel.fileno(), _CHANNEL),
        ],
        setsid=True,
    )
