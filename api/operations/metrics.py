"""Metrics of several processes: a snapshot of each as plain data, their sum, and the text for Prometheus.

Counters and histograms are added up. A gauge shows the largest value of any process. Values that every process reads from the
database are not part of a snapshot (`DatabaseMetrics`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

Snapshot = Sequence[Any]
"""Of each metric: name, help, type, samples; of each sample: name, labels, value. It survives JSON."""

_CREATED = "_created"


class DatabaseMetrics(CollectorRegistry):
    """Gauges that are read from the database with each scrape: every process would show the same."""


def snapshot(registry: CollectorRegistry) -> Snapshot:
    return [
        [one.name, one.documentation, one.type, [[each.name, each.labels, each.value] for each in one.samples]]
        for one in registry.collect()
    ]


def total(snapshots: Iterable[Snapshot]) -> Snapshot:
    """One snapshot of several."""
    metrics: dict[str, tuple[str, str, dict[Any, list[Any]]]] = {}
    for one in snapshots:
        for name, meaning, kind, samples in one:
            _, _, known = metrics.setdefault(name, (meaning, kind, {}))
            for sample in samples:
                _add(known, sample, kind)
    return [[name, meaning, kind, list(samples.values())] for name, (meaning, kind, samples) in metrics.items()]


def _add(known: dict[Any, list[Any]], sample: Sequence[Any], kind: str) -> None:
    name, labels, value = sample
    key = (name, *sorted(labels.items()))
    before = known.get(key)
    if before is None:
        known[key] = [name, labels, value]
    elif name.endswith(_CREATED):
        before[2] = min(before[2], value)
    else:
        before[2] = max(before[2], value) if kind == "gauge" else before[2] + value


def without_gauges(one: Snapshot) -> Snapshot:
    """What still counts of a process that has ended."""
    return [metric for metric in one if metric[2] != "gauge"]


def exposition(one: Snapshot, *others: CollectorRegistry) -> bytes:
    """The text for Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(one))
    return generate_latest(registry) + b"".join(map(generate_latest, others))


class _Metrics(Collector):
    def __init__(self, of: Snapshot) -> None:
        self._of = of

    def collect(self) -> Iterator[Metric]:
        for name, meaning, kind, samples in self._of:
            metric = Metric(name, meaning, kind)
            for sample, labels, value in samples:
                metric.add_sample(sample, labels, value)
            yield metric
