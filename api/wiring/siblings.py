"""Siblings: the processes that serve one product together. What is limited or counted over all of them is asked for here."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry

from api.http.seats import OwnSeats, Seats
from api.operations.metrics import Snapshot, of_process, snapshot
from api.speke.rate import PER_SECOND, TokenBuckets


class Siblings(Protocol):
    """`processes` is their number; a limit that each keeps for itself is divided by it."""

    processes: int
    per_second: int
    """The rate of `take_token`."""

    @property
    def seats(self) -> Seats: ...

    async def take_token(self, client: str) -> int:
        """As `TokenBuckets.take`."""
        ...

    async def metrics(self) -> Snapshot:
        """The metrics of all processes together."""
        ...


class Alone:
    """One process without siblings."""

    processes = 1

    def __init__(self, registry: CollectorRegistry, *, per_second: int = PER_SECOND) -> None:
        self.per_second = per_second
        self.seats = OwnSeats()
        self._registry = registry
        self._buckets = TokenBuckets(per_second)

    async def take_token(self, client: str) -> int:
        return self._buckets.take(client)

    async def metrics(self) -> Snapshot:
        return of_process(snapshot(self._registry), "api 1")
