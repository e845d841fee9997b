"""The workers of one process: starts those of its roles, and stops them in reverse order. The roles are defined by the rooms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import ClassVar, Final, Protocol

from projections.kernel.background_task import BackgroundTask
from projections.record.queries import RecordQueries
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.quiet import QuietMode
from workers.kernel.worker import Worker

FOLLOW: Final = 2.0
"""Seconds between two checks if the installation is to be quiet."""

_log = logging.getLogger(__name__)


class MakeWorkers(Protocol):
    """Makes the workers of the roles, in groups in the order in which they start. While it is `quiet`, only those of the roles that
    reach nothing but the database."""

    def __call__(self, *, quiet: bool) -> Sequence[Sequence[Worker]]: ...


class RunningGroups:
    """Running workers, in the groups in which they were started."""

    def __init__(self) -> None:
        self._started = AsyncExitStack()

    async def start(self, workers: Sequence[Worker]) -> None:
        """Start a group. Its workers are stopped at the same time, since some take a while to finish their work. `stop` also stops
        a group whose start failed half-way."""
        begun: list[Worker] = []

        async def stop() -> None:
            stopped = await asyncio.gather(*(worker.stop() for worker in begun), return_exceptions=True)
            for fault in filter(None, stopped):
                raise fault

        self._started.push_async_callback(stop)
        for worker in workers:
            begun.append(worker)
            await worker.start()

    async def stop(self) -> None:
        """Stop the groups in reverse order. New groups can be started afterwards."""
        await self._started.aclose()


class Workers(BackgroundTask):
    """The worker roles of one process. The workers that run `always` do so regardless of the roles.

    While the installation is quiet, only the roles that reach nothing but the database run, and they read the log instead of Kafka.
    The order is checked every two seconds, and all roles are restarted when it has changed.
    """

    WHAT: ClassVar[str] = "the order to be quiet"

    def __init__(
        self,
        names: Sequence[str],
        make: MakeWorkers,
        *,
        always: Sequence[Worker],
        quiet: QuietMode,
        records: RecordQueries,
        metrics: WorkerMetrics,
    ) -> None:
        self.names = tuple(names)
        self._make = make
        self._permanent = always
        self._quiet = quiet
        self._records = records
        self._metrics = metrics
        self._always, self._running = RunningGroups(), RunningGroups()
        self._followed: bool | None = None
        """The order that the roles run by; None while they are stopped."""

    async def start(self) -> None:
        """Start the roles according to the order to be quiet. `stop` must be called even if this fails half-way."""
        await self._always.start(self._permanent)
        await self._follow()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        try:
            await self._running.stop()
        finally:
            await self._always.stop()

    async def _turn(self) -> None:
        await asyncio.sleep(FOLLOW)
        await self._follow()

    async def _follow(self) -> None:
        await self._quiet.read(self._records)
        quiet = self._quiet.on
        self._metrics.quiet.set(quiet)
        if quiet == self._followed:
            return
        if self._followed is not None or quiet:
            _log.warning("the installation is quiet: nothing leaves it" if quiet else "the installation is not quiet any more")
        self._followed = None
        await self._running.stop()
        for group in self._make(quiet=quiet):
            await self._running.start(group)
        self._followed = quiet
