"""Metrics of several processes: a snapshot of each as plain data, their sum, and the text for Prometheus.

Counters and histograms are added up, and so are gauges that say how many there are. Of one that says how long, or what there is for
all, the largest value is shown. What the operating system says of a process is labelled with the process. Values that every process
reads from the database are not part of a snapshot (`DatabaseMetrics`).
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
"""Series of which nothing is asked; each would be one more for each histogram and counter."""
_LARGEST = ("_seconds", "_info", "_free")
"""Ends of names of gauges that are not added up."""
_OF_A_PROCESS = "process_"


class DatabaseMetrics(CollectorRegistry):
    """Gauges that are read from the database with each scrape: every process would show the same."""


def snapshot(registry: CollectorRegistry) -> Snapshot:
    return [
        [
            one.name,
            one.documentation,
            one.type,
            [[each.name, each.labels, each.value] for each in one.samples if not each.name.endswith(_CREATED)],
        ]
        for one in registry.collect()
    ]


def of_process(one: Snapshot, process: str) -> Snapshot:
    """With the process as a label of what the operating system says of it."""
    return [
        [name, meaning, kind, [[sample, {**labels, "process": process}, value] for sample, labels, value in samples]]
        if name.startswith(_OF_A_PROCESS)
        else [name, meaning, kind, samples]
        for name, meaning, kind, samples in one
    ]


def total(snapshots: Iterable[Snapshot]) -> Snapshot:
    """One snapshot of several."""
    metrics: dict[str, tuple[str, str, dict[Any, list[Any]]]] = {}
    for one in snapshots:
        for name, meaning, kind, samples in one:
            _, _, known = metrics.setdefault(name, (meaning, kind, {}))
            for sample in samples:
                _add(known, sample, largest=kind == "gauge" and name.endswith(_LARGEST))
    return [[name, meaning, kind, list(samples.values())] for name, (meaning, kind, samples) in metrics.items()]


def _add(known: dict[Any, list[Any]], sample: Sequence[Any], *, largest: bool) -> None:
    name, labels, value = sample
    key = (name, *sorted(labels.items()))
    before = known.get(key)
    if before is None:
        known[key] = [name, labels, value]
    else:
        before[2] = max(before[2], value) if largest else before[2] + value


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
