"""What waits to be done, as metrics: how far consumers are behind the log, and what is to be delivered.

Issue 5, "Operators see it". Asked of the database when somebody looks, so that every process says the same.
"""

from __future__ import annotations

from contextlib import suppress

from prometheus_client import CollectorRegistry, Gauge

from domain.kernel.errors import Unavailable
from projections.consumers.queries import ConsumerQueries
from projections.deliveries.queries import MOST_COUNTED, DeliveryQueries

_BOUNDED = f"counted up to {MOST_COUNTED}"


class Backlog:
    """Gauges that are set by looking."""

    def __init__(self, consumers: ConsumerQueries, deliveries: DeliveryQueries, *, registry: CollectorRegistry) -> None:
        self._consumers = consumers
        self._deliveries = deliveries

        def of_consumer(name: str, meaning: str) -> Gauge:
            return Gauge(f"medialedger_{name}", meaning, ("consumer",), registry=registry)

        def of_deliveries(name: str, meaning: str) -> Gauge:
            return Gauge(f"medialedger_deliveries_{name}", meaning, registry=registry)

        self._position = of_consumer("consumer_position", "Log position up to which a consumer has dealt with everything")
        self._lag = of_consumer("consumer_lag_events", "Domain events between a consumer's position and the log's head")
        self._parked = of_consumer("parked_records", f"Records that a consumer could not take in, {_BOUNDED}")
        self._pending = of_deliveries("pending", f"Deliveries that are not finished, {_BOUNDED}")
        self._due = of_deliveries("due", f"Deliveries among the first {MOST_COUNTED} pending ones that should be sent by now")
        self._in_flight = of_deliveries("in_flight", "Deliveries that are being sent, by all processes")
        self._oldest = of_deliveries("oldest_seconds", "How long ago the first of the due deliveries became due")

    async def look(self) -> None:
        with suppress(Unavailable):
            await self._look_at_consumers()
            await self._look_at_deliveries()

    async def _look_at_consumers(self) -> None:
        found = await self._consumers.all()
        for gauge in (self._position, self._lag, self._parked):
            gauge.clear()
        for one in found:
            self._parked.labels(one.name).set(one.parked)
            if one.position is not None and one.lag is not None:
                self._position.labels(one.name).set(one.position)
                self._lag.labels(one.name).set(one.lag)

    async def _look_at_deliveries(self) -> None:
        found = await self._deliveries.backlog()
        self._pending.set(found.pending)
        self._due.set(found.due)
        self._in_flight.set(found.in_flight)
        self._oldest.set(found.oldest)
