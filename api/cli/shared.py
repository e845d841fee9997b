"""The state that the processes of one supervisor share: token buckets, seats, totals of metrics, and the memory of `ClientChanges`.
The supervisor keeps all counts, so limits are exact over all processes without a lock."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector

from api.http.seats import OwnSeats
from api.operations.metrics import Snapshot, of_process, snapshot, total, without_gauges
from api.speke.rate import TokenBuckets
from projections.client.changes import MOST_PROCESSES, SIZE


@dataclass(frozen=True)
class Place:
    """The role of one of the processes. Its sockets outlive the process."""

    kind: str
    number: int
    roles: Sequence[str] = ()
    sockets: Sequence[socket.socket] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


class Running(Protocol):
    """A process that has not ended."""

    place: Place
    snapshot: Snapshot

    async def scrape(self) -> None: ...

    async def ended(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Shared:
    """The shared state of `processes` processes. It must be closed at the end, because it holds the shared memory."""

    def __init__(self, processes: int, *, per_second: int, settings: Mapping[str, Any] | None = None) -> None:
        self.processes = processes
        self.settings = settings or {}
        """The settings that the command decided, which override the environment."""
        self.buckets = TokenBuckets(per_second)
        self.seats = OwnSeats()
        self.running: list[Running] = []
        self.restarts = 0
        self.cells = list(range(MOST_PROCESSES))
        """The cells of `ClientChanges` that no process uses."""
        self.changes = os.memfd_create("medialedger-client-changes")
        os.truncate(self.changes, SIZE)
        self._of_ended: Snapshot = ()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def close(self) -> None:
        os.close(self.changes)

    def ended(self, snapshot: Snapshot, seats: Counter[str]) -> None:
        """Keep the counts of an ended process in the totals, and free its seats."""
        self._of_ended = total([self._of_ended, without_gauges(snapshot)])
        for kind, taken in seats.items():
            for _ in range(taken):
                self.seats.leave(kind)

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
