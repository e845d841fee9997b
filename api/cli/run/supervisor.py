"""The supervisor: runs the product in several processes that share the port, and restarts processes that end. See ADR 0030."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector

from api.cli.run.database import OpenDatabase, check_connections, warn_of_rights
from api.cli.run.metrics_port import metrics_port, metrics_summary
from api.cli.run.process_channel import ChannelClosed, ProcessChannel
from api.cli.run.serving import Ready, no_further_step
from api.cli.run.sockets import bound_sockets
from api.cli.run.startup_text import print_ready, print_status, working_text
from api.cli.run.stop_signals import StopSignals
from api.guards.limits import ConnectionLimits
from api.operations.metrics import Snapshot, of_process, snapshot, total, without_gauges
from api.speke import rate
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.client import changes
from projections.kernel.background_task import start_forever, start_task
from workers.kernel.fork_client import ForkedProcess, ForkServer
from workers.ports.provisioners import HALT_SECONDS

_PATIENCE: Final = 15
"""The seconds that a process gets in addition to its own stop time."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0
_STABLE: Final = 30.0
"""The seconds of running after which the pause before a restart is reset to the first one."""

logger = logging.getLogger(__name__)


async def supervise(
    settings: Settings,
    *,
    database: OpenDatabase,
    api: int,
    workers: int,
    roles: Sequence[str],
    ready: Ready = no_further_step,
) -> int:
    """Run so many processes of the API and of the workers until a stop signal. Without worker processes, the API processes have the
    `roles` too. `ready` is called with the port when the API listens."""
    with StopSignals() as signals, ExitStack() as stack:
        copies = stack.enter_context(bound_sockets(settings.host, port=settings.port, copies=api)) if api else []
        if copies:
            settings = settings.listening_on(copies[0][0].getsockname()[1])
        shared = Shared(api, workers, settings=settings.decided)
        stack.callback(shared.close)
        places = [
            *(ProcessPlace("api", number + 1, () if workers else roles, sockets) for number, sockets in enumerate(copies)),
            *(ProcessPlace("workers", number + 1, roles) for number in range(workers)),
        ]
        try:
            async with (
                _metrics_port(settings, shared, needed=not copies) as metrics,
                ForkServer("api.cli.run.process", arguments=sorted({place.kind for place in places})) as fork_server,
                database(settings) as opened,
            ):
                supervisor = Supervisor(places, shared, fork_server=fork_server, seconds=settings.shutdown_seconds)
                warn_of_rights(opened)
                await check_connections(opened, settings, processes=api + workers)
                try:
                    summary = [*(await supervisor.start()), _processes(api, workers), *metrics_summary(settings, metrics)]
                    if copies:
                        address, port = copies[0][0].getsockname()[:2]
                        print_ready(settings, address=address, port=port, database=opened.label, summary=summary)
                        ready(port)
                    else:
                        print_status(working_text(opened.label, summary=summary))
                    await supervisor.run(signals)
                finally:
                    signals.on_stop(lambda: None)
                    await supervisor.stop(signals.forced)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        print_status("stopped by force" if signals.forced.is_set() else "stopped")
        return 1 if signals.forced.is_set() else 0


def _metrics_port(settings: Settings, shared: Shared, *, needed: bool) -> AbstractAsyncContextManager[int | None]:
    return metrics_port(settings, shared.metrics) if needed else nullcontext()


def _processes(api: int, workers: int) -> tuple[str, str]:
    counts = [f"{count} of the {kind}" for kind, count in (("API", api), ("workers", workers)) if count]
    return "processes", f"{', '.join(counts)}; SIGUSR1 restarts them one by one"


def patience(place: ProcessPlace, seconds: int) -> float:
    """Return the seconds in which the process of a place should stop gracefully."""
    provisions = place.kind == "workers" and not {"all", "provisioning"}.isdisjoint(place.roles)
    return 2 * seconds + _PATIENCE + (HALT_SECONDS if provisions else 0)


class Supervisor:
    """Keeps one process in each place."""

    def __init__(self, places: Sequence[ProcessPlace], shared: Shared, *, fork_server: ForkServer, seconds: int) -> None:
        self._places = [_Keeper(place, shared, fork_server=fork_server, seconds=seconds) for place in places]
        self._shared = shared
        self._seconds = seconds
        self._restarting: asyncio.Task[None] | None = None

    async def start(self) -> Summary:
        """Start the first process alone, since it migrates the database; then all others. Raise `StartError` if one fails."""
        first, *others = self._places
        summary = dict(await first.start())
        starts = [asyncio.create_task(each.start()) for each in others]
        try:
            for start in asyncio.as_completed(starts):
                summary |= dict(await start)
        finally:
            for each in starts:
                each.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        return list(summary.items())

    async def run(self, signals: StopSignals) -> None:
        """Keep the processes running until a stop signal."""
        stopped = asyncio.Event()
        signals.on_stop(stopped.set)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._restart)
        keeping = [start_forever(each.keep, what=f"keeper of {each.place}") for each in self._places]
        try:
            await stopped.wait()
        finally:
            loop.add_signal_handler(signal.SIGUSR1, lambda: None)  # too late for a restart
            tasks = [*keeping, *([self._restarting] if self._restarting is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self, forced: asyncio.Event) -> None:
        """Stop all processes at once; kill them after a second signal, or when one takes too long."""
        for each in self._places:
            for sock in each.place.sockets:
                sock.close()
        running = list(self._shared.running)
        for process in running:
            process.terminate()
        ends = asyncio.gather(*(process.ended() for process in running))
        waits: list[asyncio.Future[Any]] = [ends, asyncio.ensure_future(forced.wait())]
        seconds = max((patience(each.place, self._seconds) for each in self._places), default=0.0)
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        waits[1].cancel()
        if not ends.done():
            logger.error("the processes are killed: %s", "a second signal" if forced.is_set() else "they did not stop in time")
            for process in running:
                process.kill()
        await ends

    def _restart(self) -> None:
        if self._restarting is None or self._restarting.done():
            self._restarting = start_task(self._one_by_one(), what="restart")
        else:
            logger.warning("the processes are being restarted already")

    async def _one_by_one(self) -> None:
        logger.info("the processes are restarted one by one")
        for each in self._places:
            try:
                await each.replace()
            except StartError as error:
                logger.error("the restart is aborted, and the other processes continue to run: %s", error)
                return
        logger.info("all processes were restarted")


class _Keeper:
    """Keeps a process in one place: restarts it when it ends, and replaces it without a gap."""

    def __init__(self, place: ProcessPlace, shared: Shared, *, fork_server: ForkServer, seconds: int) -> None:
        self.place = place
        self._shared = shared
        self._fork_server = fork_server
        self._seconds = seconds
        self._current: Supervised
        self._starting = asyncio.Lock()

    def _process(self) -> Supervised:
        return Supervised(self.place, self._shared, fork_server=self._fork_server)

    async def start(self) -> Summary:
        self._current = self._process()
        await self._current.start()
        return await self._current.ready()

    async def keep(self) -> None:
        """Restart the process whenever it ends, with a pause that grows while it ends early."""
        pause = 0.0
        while True:
            process = self._current
            code = await process.ended()
            if process is not self._current:
                continue  # it was replaced
            pause = _FIRST_PAUSE if not pause or process.age > _STABLE else min(pause * 2, _LONGEST_PAUSE)
            self._shared.restarts += 1
            logger.error(
                "the process %s (pid %d) %s; it is restarted in %g s",
                *(
                    self.place,
                    process.pid,
                    f"could not start: {process.failure}" if process.failure else f"ended: {exit_text(code)}",
                    pause,
                ),
            )
            await asyncio.sleep(pause)
            async with self._starting:
                if process is self._current:
                    await self._start_again()

    async def _start_again(self) -> None:
        new = self._process()
        try:
            await new.start()
        except StartError as error:
            logger.error("the process %s cannot be started: %s", self.place, error)
        else:
            self._current = new

    async def replace(self) -> None:
        """Start another process on the same sockets first, then retire this one, so that no connection is refused or reset."""
        async with self._starting:
            new = self._process()
            await new.start()
            await new.ready()
            old, self._current = self._current, new
        old.channel.tell("retire")
        try:
            async with asyncio.timeout(patience(self.place, self._seconds) + ConnectionLimits().idle_seconds):
                await old.ended()
        except TimeoutError:
            logger.error("the process %s (pid %d) is killed: it did not end in time", self.place, old.pid)
            old.kill()
            await old.ended()


_SCRAPE_SECONDS: Final = 1.0
_LAST_WORDS: Final = 1.0
"""The seconds for reading the last messages of an ended process."""


Summary = Sequence[tuple[str, str]]
"""The lines for the person who started the product."""


class Supervised:
    """A process of the supervisor."""

    def __init__(self, place: ProcessPlace, shared: Shared, *, fork_server: ForkServer) -> None:
        self.place = place
        self._fork_server = fork_server
        self.snapshot: Snapshot = ()
        self._since = monotonic()
        self._shared = shared
        self._cell = shared.cells.pop()
        self.failure = ""
        """The reported reason why it could not start."""
        self._ready: asyncio.Future[Summary] = asyncio.get_running_loop().create_future()
        self._process: ForkedProcess
        self._ending: asyncio.Task[int]
        self.channel = ProcessChannel(
            answers={"metrics": lambda _: shared.metrics()},
            notices={"ready": self._set_ready, "failed": self._set_failure, "metrics": self._store_metrics},
        )

    @property
    def age(self) -> float:
        return monotonic() - self._since

    @property
    def pid(self) -> int:
        return self._process.pid

    async def start(self) -> None:
        """Fork the process and connect to it. Raise `StartError` if that fails."""
        ours, theirs = socket.socketpair()
        order = {
            "kind": self.place.kind,
            "title": f"medialedger: {self.place}",
            "processes": self._shared.processes,
            "api_processes": self._shared.api_processes,
            "cell": self._cell,
            "roles": list(self.place.roles),
            "settings": dict(self._shared.settings),
        }
        passed = [theirs.fileno(), self._shared.changes, self._shared.rates, *(each.fileno() for each in self.place.sockets)]
        try:
            self._process = await self._fork_server.fork(order, passed)
        except BaseException as error:
            ours.close()
            self._shared.cells.append(self._cell)
            if isinstance(error, OSError):
                raise StartError(f"no process could be forked: {error.strerror or error}") from None
            raise
        finally:
            theirs.close()
        self._shared.running.append(self)
        self._ending = start_task(self._end(), what="end of a process")
        await self.channel.connect(ours)

    async def ready(self) -> Summary:
        """Wait until the process is ready and return its summary. Raise `StartError` with the reported reason if it ends before."""
        either: list[asyncio.Future[Any]] = [self._ready, self._ending]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return self._ready.result()
        raise StartError(self.failure or f"the process {self.place} ended before it was ready: {exit_text(self._ending.result())}")

    async def ended(self) -> int:
        """Wait for the end and return the exit code; negative for a signal."""
        return await asyncio.shield(self._ending)

    async def _end(self) -> int:
        """Wait for the end of the process, and read its last messages."""
        code = await self._process.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.channel.ended()
        self._shared.running.remove(self)
        self._shared.ended(self.snapshot)
        self._shared.cells.append(self._cell)
        await self.channel.close()
        return code

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    async def scrape(self) -> None:
        """Ask for the metrics of the process. If it does not answer, its earlier numbers stay."""
        with suppress(ChannelClosed, TimeoutError):
            self._store_metrics(await self.channel.ask("metrics", seconds=_SCRAPE_SECONDS))

    def _store_metrics(self, snapshot: Snapshot) -> None:
        self.snapshot = of_process(snapshot, str(self.place))

    def _set_ready(self, summary: Summary) -> None:
        if not self._ready.done():
            self._ready.set_result(summary)
            self._shared.set_ready(self.place)

    def tell_complete(self) -> None:
        self.channel.tell("complete")

    def _set_failure(self, reason: str) -> None:
        self.failure = reason


def exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@dataclass(frozen=True)
class ProcessPlace:
    """The role of one of the processes. Its sockets outlive the process."""

    kind: str
    number: int
    roles: Sequence[str] = ()
    sockets: Sequence[socket.socket] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


def _shared_memory(name: str, *, size: int) -> int:
    descriptor = os.memfd_create(name)
    os.truncate(descriptor, size)
    return descriptor


class Shared:
    """The shared state of all processes. It must be closed at the end, because it holds the shared memory."""

    def __init__(self, api: int, workers: int, *, settings: Mapping[str, Any] | None = None) -> None:
        self.processes = api + workers
        self.api_processes = api
        self.settings = settings or {}
        """The settings that the command decided, which override the environment."""
        self.running: list[Supervised] = []
        """The processes that have not ended."""
        self.restarts = 0
        self._ready: set[str] = set()
        """The places whose process has been ready."""
        self.cells = list(range(changes.MOST_PROCESSES))
        """The cells of `ClientChanges` that no process uses."""
        self.changes = _shared_memory("medialedger-client-changes", size=changes.SIZE)
        self.rates = _shared_memory("medialedger-rates", size=rate.SIZE)
        self._of_ended: Snapshot = ()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def close(self) -> None:
        os.close(self.changes)
        os.close(self.rates)

    def set_ready(self, place: ProcessPlace) -> None:
        """Record that the process of a place is ready. When every place has had a ready process, all processes are informed."""
        self._ready.add(str(place))
        if len(self._ready) == self.processes:
            for each in self.running:
                each.tell_complete()

    def ended(self, snapshot: Snapshot) -> None:
        """Keep the counts of an ended process in the totals."""
        self._of_ended = total([self._of_ended, without_gauges(snapshot)])

    async def metrics(self) -> Snapshot:
        """Return the sum over all processes, including ended ones. No process is counted twice, because nothing is awaited after
        the scrapes."""
        await asyncio.gather(*(each.scrape() for each in list(self.running)))
        return total([self._own(), self._of_ended, *(each.snapshot for each in self.running)])

    def _own(self) -> Snapshot:
        kinds = Counter(each.place.kind for each in self.running)
        processes, restarts = "medialedger_processes", "medialedger_process_restarts"
        return [
            [processes, "Processes that run", "gauge", [[processes, {"kind": kind}, count] for kind, count in kinds.items()]],
            [restarts, "Processes that ended and were started again", "counter", [[f"{restarts}_total", {}, self.restarts]]],
            *of_process(snapshot(self._registry), "supervisor"),
        ]
