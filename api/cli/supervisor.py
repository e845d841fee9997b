"""The supervisor: runs the product in several processes that share the port, and restarts processes that end. See ADR 0030."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from typing import Any, Final

from api.cli.database import OpenDatabase, check_connections, warn_of_rights
from api.cli.metrics_port import metrics_port, metrics_summary
from api.cli.ready import print_ready, print_status, working_text
from api.cli.serving import Ready, no_further_step
from api.cli.shared import Place, Shared
from api.cli.sockets import bound_sockets
from api.cli.stop_signals import StopSignals
from api.cli.supervised import Summary, Supervised, exit_text
from api.http.connection_limits import ConnectionLimits
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from projections.kernel.background_task import start_forever, start_task
from workers.kernel.forked import ForkServer
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
        shared = Shared(api + workers, per_second=settings.speke_rate, settings=settings.decided)
        stack.callback(shared.close)
        places = [
            *(Place("api", number + 1, () if workers else roles, sockets) for number, sockets in enumerate(copies)),
            *(Place("workers", number + 1, roles) for number in range(workers)),
        ]
        try:
            async with (
                _metrics_port(settings, shared, needed=not copies) as metrics,
                ForkServer("api.cli.process") as fork_server,
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


def patience(place: Place, seconds: int) -> float:
    """Return the seconds in which the process of a place should stop gracefully."""
    provisions = place.kind == "workers" and not {"all", "provisioning"}.isdisjoint(place.roles)
    return 2 * seconds + _PATIENCE + (HALT_SECONDS if provisions else 0)


class Supervisor:
    """Keeps one process in each place."""

    def __init__(self, places: Sequence[Place], shared: Shared, *, fork_server: ForkServer, seconds: int) -> None:
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

    def __init__(self, place: Place, shared: Shared, *, fork_server: ForkServer, seconds: int) -> None:
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
