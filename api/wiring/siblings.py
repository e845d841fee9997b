"""Siblings: the processes that serve one product together. They provide the limits and counts that apply to all of them."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry

from api.guards.seats import OwnSeats, Seats
from api.operations.metrics import Snapshot, of_process, snapshot
from api.speke.rate import PER_SECOND, TokenBuckets


class Siblings(Protocol):
    """The processes of one product. `processes` is their number; a limit that each process enforces separately is divided by it."""

    processes: int
    per_second: int
    """The rate of `take_token`."""

    @property
    def seats(self) -> Seats: ...

    @property
    def complete(self) -> bool:
        """True when each of them has been ready once."""
        ...

    async def take_token(self, client: str) -> int:
        """Take a token as `TokenBuckets.take` does."""
        ...

    async def metrics(self) -> Snapshot:
        """Return the metrics of all processes together."""
        ...


class Alone:
    """A process without siblings."""

    processes = 1
    complete = True

    def __init__(self, registry: CollectorRegistry, *, per_second: int = PER_SECOND) -> None:
        self.per_second = per_second
        self.seats = OwnSeats()
        self._registry = registry
        self._buckets = TokenBuckets(per_second)

    async def take_token(self, client: str) -> int:
        return self._buckets.take(client)

    async def metrics(self) -> Snapshot:
        return of_process(snapshot(self._registry), "api 1")
