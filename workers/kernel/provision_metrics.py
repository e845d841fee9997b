"""Metrics of provisioning, counted by the process that does the work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400)


class ProvisionMetrics:
    """The metrics of provisioning. Labels are names of states and deployments."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ends = Counter(
            "medialedger_provision_ends",
            "Runs of infrastructure that ended, for each Event that waited, by the state of the Event then",
            ("state",),
            registry=registry,
        )
        self._seconds = Histogram(
            "medialedger_provision_seconds",
            "How long the work for an infrastructure key took",
            ("deployment",),
            buckets=_SECONDS,
            registry=registry,
        )

    def declare(self, states: Iterable[str]) -> None:
        """Create the counters of these states with the value zero, so that the first run is an increase."""
        for state in states:
            self._ends.labels(state)

    def ended(self, state: str) -> None:
        self._ends.labels(state).inc()

    def worked(self, deployment: str, *, seconds: float) -> None:
        self._seconds.labels(deployment).observe(seconds)
