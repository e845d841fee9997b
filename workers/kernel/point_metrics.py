"""Metrics of the samples of publishing points, counted by the process that takes the samples."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATE: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0)
_STATES: Final = ("idle", "starting", "started", "stopping", "stopped", "silent")


class PointMetrics:
    """The metrics of samples. Labels are the documented states of servers, never other words that they send."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._samples = Counter(
            "medialedger_point_samples",
            "Samples of publishing points, by the reported state; silent: none was reported",
            ("state",),
            registry=registry,
        )
        self._seconds = Histogram("medialedger_point_sample_seconds", "How long samples took", buckets=_SECONDS, registry=registry)
        self._late = Histogram("medialedger_point_sample_late_seconds", "How late samples began", buckets=_LATE, registry=registry)
        self._put_off = Counter(
            "medialedger_point_samples_put_off",
            "Samples of slow points that were postponed, since too many slow ones were in progress",
            registry=registry,
        )
        self._watched = Gauge("medialedger_points_watched", "Publishing points that the process samples", registry=registry)

    def sampled(self, state: str, *, seconds: float) -> None:
        self._samples.labels(state if state in _STATES else "other").inc()
        self._seconds.observe(seconds)

    def started(self, *, late: float) -> None:
        self._late.observe(max(late, 0.0))

    def put_off(self) -> None:
        self._put_off.inc()

    def watched(self, points: int) -> None:
        self._watched.set(points)
