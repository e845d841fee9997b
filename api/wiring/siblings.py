"""Siblings: the processes that serve one product together. They provide the limits and counts that apply to all of them."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry

from api.operations.metrics import Snapshot, of_process, snapshot
from api.speke.rate import TokenBuckets


class Siblings(Protocol):
    """The processes of one product. A limit that each process enforces separately is divided by their number: `processes` of all
    kinds, of which `api_processes` serve the API."""

    processes: int
    api_processes: int
    buckets: TokenBuckets
    """The rate limit, which all processes share."""

    @property
    def complete(self) -> bool:
        """True when each of them has been ready once."""
        ...

    async def metrics(self) -> Snapshot:
        """Return the metrics of all processes together."""
        ...


class Alone:
    """A process without siblings."""

    processes = api_processes = 1
    complete = True

    def __init__(self, registry: CollectorRegistry, *, buckets: TokenBuckets | None = None) -> None:
        self.buckets = buckets or TokenBuckets()
        self._registry = registry

    async def metrics(self) -> Snapshot:
        return of_process(snapshot(self._registry), "api 1")
