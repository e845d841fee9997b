"""Metrics of infrastructure that waits, from the database."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from projections.provision.queries import ProvisionQueries


class ProvisionBacklog:
    """Gauges that are set from the database."""

    def __init__(self, provisions: ProvisionQueries, *, registry: CollectorRegistry) -> None:
        self._provisions = provisions
        self._waiting = Gauge(
            "medialedger_provision_waiting", "Infrastructure keys with work that has not ended", registry=registry
        )
        self._oldest = Gauge(
            "medialedger_provision_oldest_seconds", "How long the longest of them has been waiting for its end", registry=registry
        )

    async def refresh(self) -> None:
        waiting, oldest = await self._provisions.waiting()
        self._waiting.set(waiting)
        self._oldest.set(oldest)
