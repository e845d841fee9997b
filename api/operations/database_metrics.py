"""Metrics of a process's use of the database: its appends to the log and its connection pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from projections.kernel.database.database import Pool
from projections.log.executor import CommandExecutor

_BOUNDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_GAUGES: Final = {
    "pool_size": ("size", "Open connections of a pool"),
    "pool_max": ("max", "Connections that a pool may have"),
    "requests_waiting": ("waiting", "Queries that wait for a connection of a pool"),
}
_COUNTERS: Final = {
    "requests_num": ("requests", "Queries that requested a connection of a pool"),
    "requests_queued": ("queued", "Queries that had to wait for a connection"),
    "requests_errors": ("timeouts", "Queries that got no connection because they waited too long or too many were waiting"),
    "connections_lost": ("lost", "Connections of a pool that broke"),
}


class AppendMetrics:
    """The appends of a process: their sizes, waiting times and durations."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sizes = Histogram("medialedger_append_batch_events", "Domain events in one commit", buckets=_SIZES, registry=registry)
        self._waits = Histogram(
            "medialedger_append_wait_seconds",
            "Waiting time of the first change of a commit",
            buckets=_BOUNDS,
            registry=registry,
        )
        self._commits = Histogram(
            "medialedger_append_commit_seconds",
            "Time to write a commit, including its repeats",
            buckets=_BOUNDS,
            registry=registry,
        )

    def taken(self, events: int, waited: float) -> None:
        self._sizes.observe(events)
        self._waits.observe(waited)

    def written(self, seconds: float) -> None:
        self._commits.observe(seconds)


class LostRaces(Collector):
    """`medialedger_append_conflicts_total`: changes that lost a race against another change, and were decided again or refused."""

    def __init__(self, executor: CommandExecutor, registry: CollectorRegistry) -> None:
        self._executor = executor
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        counter = CounterMetricFamily(
            "medialedger_append_conflicts", "Changes that lost a race against another change, by the kind of race", labels=["lost"]
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
            for pool, values in stats.items():
                gauge.add_metric([pool], values.get(key, 0))
            yield gauge
        used = GaugeMetricFamily("medialedger_database_pool_in_use", "Connections of a pool in use by queries", labels=["pool"])
        for pool, values in stats.items():
            used.add_metric([pool], values.get("pool_size", 0) - values.get("pool_available", 0))
        yield used
        for key, (name, meaning) in _COUNTERS.items():
            counter = CounterMetricFamily(f"medialedger_database_pool_{name}", meaning, labels=["pool"])
            for pool, values in stats.items():
                counter.add_metric([pool], values.get(key, 0))
            yield counter
        waited = CounterMetricFamily(
            "medialedger_database_pool_wait_seconds", "Total time that queries have waited for a connection", labels=["pool"]
        )
        for pool, values in stats.items():
            waited.add_metric([pool], values.get("requests_wait_ms", 0) / 1000)
        yield waited
