"""Metrics of what a process does with the database: its appends to the log, and its pools of connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from projections.kernel.database import Pool
from projections.log.executor import CommandExecutor

_BOUNDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_GAUGES: Final = {
    "pool_size": ("size", "Connections of a pool that are open"),
    "pool_max": ("max", "Connections that a pool may have"),
    "requests_waiting": ("waiting", "Queries that wait for a connection of a pool"),
}
_COUNTERS: Final = {
    "requests_num": ("requests", "Queries that asked a pool for a connection"),
    "requests_queued": ("queued", "Queries that had to wait for a connection"),
    "requests_errors": ("timeouts", "Queries that got no connection: the wait was too long, or too many waited"),
    "connections_lost": ("lost", "Connections of a pool that broke"),
}


class AppendMetrics:
    """The appends of a process: how large they are, and how long they wait and take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sizes = Histogram("medialedger_append_batch_events", "Domain events in one commit", buckets=_SIZES, registry=registry)
        self._waits = Histogram(
            "medialedger_append_wait_seconds",
            "How long the first change of a commit had waited",
            buckets=_BOUNDS,
            registry=registry,
        )
        self._commits = Histogram(
            "medialedger_append_commit_seconds",
            "How long it took to write a commit, with its repeats",
            buckets=_BOUNDS,
            registry=registry,
        )

    def taken(self, events: int, waited: float) -> None:
        self._sizes.observe(events)
        self._waits.observe(waited)

    def written(self, seconds: float) -> None:
        self._commits.observe(seconds)


class LostRaces(Collector):
    """`medialedger_append_conflicts_total`: changes that lost against another one, and were decided again or refused."""

    def __init__(self, executor: CommandExecutor, registry: CollectorRegistry) -> None:
        self._executor = executor
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        counter = CounterMetricFamily(
            "medialedger_append_conflicts", "Changes that lost a race against another one, by what was lost", labels=["lost"]
        )
        for what, count in sorted(self._executor.lost_races.items()):
            counter.add_metric([what], count)
        yield counter


class PoolMetrics(Collector):
    """`medialedger_database_pool_…`, by the name of the pool."""

    def __init__(self, pools: Mapping[str, Pool], registry: CollectorRegistry) -> None:
        self._pools = pools
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        stats = {name: pool.stats() for name, pool in self._pools.items()}
        for key, (name, meaning) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"medialedger_database_pool_{name}", meaning, labels=["pool"])
            for pool, found in stats.items():
                gauge.add_metric([pool], found.get(key, 0))
            yield gauge
        used = GaugeMetricFamily("medialedger_database_pool_in_use", "Connections of a pool that a query has", labels=["pool"])
        for pool, found in stats.items():
            used.add_metric([pool], found.get("pool_size", 0) - found.get("pool_available", 0))
        yield used
        for key, (name, meaning) in _COUNTERS.items():
            counter = CounterMetricFamily(f"medialedger_database_pool_{name}", meaning, labels=["pool"])
            for pool, found in stats.items():
                counter.add_metric([pool], found.get(key, 0))
            yield counter
        waited = CounterMetricFamily(
            "medialedger_database_pool_wait_seconds", "Time for which queries have waited for a connection", labels=["pool"]
        )
        for pool, found in stats.items():
            waited.add_metric([pool], found.get("requests_wait_ms", 0) / 1000)
        yield waited
