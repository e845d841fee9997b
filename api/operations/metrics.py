"""Metrics of several processes: a snapshot of each as plain data, their total, and the text for Prometheus.

Counters and histograms are summed, and so are gauges that count. For gauges of a duration or of a shared value the largest value is
shown. Metrics of the operating system process are labelled with the process. Values that every process reads from the database are
not part of a snapshot (`DatabaseMetrics`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

Snapshot = Sequence[Any]
"""A list of metrics: name, help, type and samples of each; name, labels and value of each sample. It can be sent as JSON."""

_CREATED = "_created"
"""Suffix of samples that are omitted. They would add one series to each histogram and counter, and are not used."""
_LARGEST = ("_seconds", "_info", "_free")
"""Suffixes of the names of gauges that are not summed."""
_OF_A_PROCESS = "process_"


class DatabaseMetrics(CollectorRegistry):
    """The registry of gauges that are read from the database at each scrape, which every process would show alike."""


def snapshot(registry: CollectorRegistry) -> Snapshot:
    return [
        [
            metric.name,
            metric.documentation,
            metric.type,
            [[sample.name, sample.labels, sample.value] for sample in metric.samples if not sample.name.endswith(_CREATED)],
        ]
        for metric in registry.collect()
    ]


def of_process(snapshot: Snapshot, process: str) -> Snapshot:
    """Return the snapshot with the process as a label of the metrics of the operating system process."""
    return [
        [name, meaning, kind, [[sample, {**labels, "process": process}, value] for sample, labels, value in samples]]
        if name.startswith(_OF_A_PROCESS)
        else [name, meaning, kind, samples]
        for name, meaning, kind, samples in snapshot
    ]


def total(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Combine several snapshots into one."""
    metrics: dict[str, tuple[str, str, dict[Any, list[Any]]]] = {}
    for snapshot in snapshots:
        for name, meaning, kind, samples in snapshot:
            _, _, by_key = metrics.setdefault(name, (meaning, kind, {}))
            for sample in samples:
                _add(by_key, sample, largest=kind == "gauge" and name.endswith(_LARGEST))
    return [[name, meaning, kind, list(samples.values())] for name, (meaning, kind, samples) in metrics.items()]


def _add(samples: dict[Any, list[Any]], sample: Sequence[Any], *, largest: bool) -> None:
    name, labels, value = sample
    key = (name, *sorted(labels.items()))
    before = samples.get(key)
    if before is None:
        samples[key] = [name, labels, value]
    else:
        before[2] = max(before[2], value) if largest else before[2] + value


def without_gauges(snapshot: Snapshot) -> Snapshot:
    """Return the metrics of a process that still count after it has ended."""
    return [metric for metric in snapshot if metric[2] != "gauge"]


def exposition(snapshot: Snapshot, *others: CollectorRegistry) -> bytes:
    """Return the text for Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(snapshot))
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
