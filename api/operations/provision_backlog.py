"""Metrics of pending infrastructure, from the database."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from projections.provision.queries import ProvisionQueries


class ProvisionBacklog:
    """Gauges of pending infrastructure that are set from the database."""

    def __init__(self, provisions: ProvisionQueries, *, registry: CollectorRegistry) -> None:
        self._provisions = provisions
        self._waiting = Gauge("medialedger_provision_waiting", "Infrastructure keys with unfinished work", registry=registry)
        self._oldest = Gauge(
            "medialedger_provision_oldest_seconds", "Age of the oldest unfinished work on infrastructure", registry=registry
        )

    async def refresh(self) -> None:
        waiting, oldest = await self._provisions.waiting()
        self._waiting.set(waiting)
        self._oldest.set(oldest)
