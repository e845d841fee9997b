"""Request counts and latencies: plain numbers of the event loop's thread, made into Prometheus families on request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LABELS: Final = ("surface", "method", "route")


class Meter:
    """The numbers of one route. No locks and no label look-ups: that is why this is not prometheus_client's own Histogram."""

    __slots__ = ("buckets", "labels", "seconds", "statuses")

    def __init__(self, surface: str, method: str, *, route: str) -> None:
        self.labels = (surface, method, route)
        self.statuses: dict[int, int] = {}
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def observe(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class RequestMetrics(Collector):
    """`<prefix>_requests_total` and `<prefix>_request_seconds`, by route template, never by the sent path."""

    def __init__(self, registry: CollectorRegistry, *, prefix: str) -> None:
        self._prefix = prefix
        self._meters: list[Meter] = []
        registry.register(self)

    def meter(self, surface: str, method: str, *, route: str) -> Meter:
        meter = Meter(surface, method, route=route)
        self._meters.append(meter)
        return meter

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        count = CounterMetricFamily(
            f"{self._prefix}_requests", "Requests answered; 499: the caller left before.", labels=(*_LABELS, "status")
        )
        latency = HistogramMetricFamily(f"{self._prefix}_request_seconds", "From the request's head to its answer.", labels=_LABELS)
        for meter in self._meters:
            if not meter.statuses:
                continue
            for status, requests in sorted(meter.statuses.items()):
                count.add_metric((*meter.labels, str(status)), requests)
            bounds = (*(str(bound) for bound in BOUNDS), "+Inf")
            cumulative = list(zip(bounds, accumulate(map(float, meter.buckets)), strict=True))
            latency.add_metric(meter.labels, cumulative, sum_value=meter.seconds)
        yield count
        yield latency
