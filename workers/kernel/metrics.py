"""Metrics of workers: runs of steps, attempts of deliveries and scheduled Events, counted by the process that makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from workers.kernel.confinement import OPEN_FILES, OPEN_NETWORK
from workers.kernel.provision_metrics import ProvisionMetrics


class SessionMetrics:
    """The metrics of sessions. Labels are kinds of sessions."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        self._starts = Counter(
            "medialedger_session_starts",
            "Starts of sessions; failed: the session could not be started",
            ("kind", "outcome"),
            registry=registry,
        )
        self._restarts = Counter(
            "medialedger_session_restarts",
            "Sessions that ended unexpectedly and were to be restarted",
            ("kind",),
            registry=registry,
        )
        self._given_up = Counter(
            "medialedger_sessions_given_up",
            "Sessions that are not restarted until the next order",
            ("kind",),
            registry=registry,
        )

    def declare(self, kind: str) -> None:
        """Create the counters of this kind with the value zero, so that the first start is an increase."""
        for outcome in ("started", "failed"):
            self._starts.labels(kind, outcome)
        self._restarts.labels(kind)
        self._given_up.labels(kind)

    def started(self, kind: str) -> None:
        self._starts.labels(kind, "started").inc()

    def start_failed(self, kind: str) -> None:
        self._starts.labels(kind, "failed").inc()

    def restarted(self, kind: str) -> None:
        self._restarts.labels(kind).inc()

    def given_up(self, kind: str) -> None:
        self._given_up.labels(kind).inc()


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


PLAYED: Final = "played"
SKIPPED: Final = "skipped"


class PlayoutMetrics:
    """The metrics of all playouts of the process together."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        self._items = Counter(
            "medialedger_playout_items",
            "Items of playlists that went on the air, or were skipped because they could not be played",
            ("outcome",),
            registry=registry,
        )
        self._repeated = Counter(
            "medialedger_playout_repeated_frames",
            "Frames that were shown again because the next frame of the item was late",
            registry=registry,
        )
        self._late = Gauge(
            "medialedger_playout_late_seconds",
            "Delay behind the clock of the playout that was checked last",
            registry=registry,
        )
        for outcome in (PLAYED, SKIPPED):
            self._items.labels(outcome)

    def played(self) -> None:
        self._items.labels(PLAYED).inc()

    def skipped(self) -> None:
        self._items.labels(SKIPPED).inc()

    def repeated(self) -> None:
        self._repeated.inc()

    def late(self, seconds: float) -> None:
        self._late.set(seconds)


_STEP_SECONDS: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400)
_ATTEMPT_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)
_LATE_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600)
NO_ANSWER: Final = "none"


class WorkerMetrics:
    """The metrics of a process with workers. Labels are names of workflows and steps, outcomes and phases: never values from
    clients."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        self.points = PointMetrics(registry)
        self.sessions = SessionMetrics(registry)
        self.playouts = PlayoutMetrics(registry)
        self.provisions = ProvisionMetrics(registry)
        self._runs = Counter(
            "medialedger_step_runs",
            "Runs of steps that ended; lost: its worker gave no sign of life",
            ("workflow", "step", "outcome"),
            registry=registry,
        )
        self._run_seconds = Histogram(
            "medialedger_step_seconds", "How long steps ran", ("workflow", "step"), buckets=_STEP_SECONDS, registry=registry
        )
        self._jobs = Counter("medialedger_jobs_ended", "Jobs that ended with a step", ("workflow", "outcome"), registry=registry)
        self._network = Gauge(
            "medialedger_steps_with_network_without_need",
            "1: steps have the network even if their workflow does not need it, since the system allows no network namespace",
            registry=registry,
        )
        self.quiet = Gauge("medialedger_quiet", "1: the installation is quiet, so nothing leaves it", registry=registry)
        self._files = Gauge(
            "medialedger_steps_with_files_without_need",
            "1: steps can read all files that their user can, since the kernel has no Landlock",
            registry=registry,
        )
        self._attempts = Counter(
            "medialedger_delivery_attempts",
            "Attempts of deliveries, by the outcome of the delivery and the class of the answer's status",
            ("outcome", "answer"),
            registry=registry,
        )
        for answer in (NO_ANSWER, "1xx", "2xx", "3xx", "4xx", "5xx"):
            self._attempts.labels("failed", answer)  # zeros, so that the first failure is an increase
        self._attempt_seconds = Histogram(
            "medialedger_delivery_attempt_seconds", "How long attempts took", buckets=_ATTEMPT_SECONDS, registry=registry
        )
        self._endpoints = Gauge(
            "medialedger_delivery_endpoints",
            "Receivers in memory by phase; resting and probing: the circuit breaker is open",
            ("phase",),
            registry=registry,
        )

        self._late = Histogram(
            "medialedger_timekeeper_late_seconds",
            "How long after their time Events were started, stopped, provisioned and terminated by the schedule",
            ("action",),
            buckets=_LATE_SECONDS,
            registry=registry,
        )

    def reached_time(self, action: str, *, late: float) -> None:
        self._late.labels(action).observe(late)

    def run_ended(self, workflow: str, step: str, *, outcome: str, seconds: float | None = None) -> None:
        self._runs.labels(workflow, step, outcome).inc()
        if seconds is not None:
            self._run_seconds.labels(workflow, step).observe(seconds)

    def confined_less(self, lack: str) -> None:
        """Record a right that a process of steps could not give up; `lack` is a message of `workers.kernel.confinement`."""
        if gauge := {OPEN_NETWORK: self._network, OPEN_FILES: self._files}.get(lack):
            gauge.set(1)

    def job_ended(self, workflow: str, *, outcome: str) -> None:
        self._jobs.labels(workflow, outcome).inc()

    def attempted(self, outcome: str, *, status: int | None, seconds: float) -> None:
        self._attempts.labels(outcome, NO_ANSWER if status is None else f"{status // 100}xx").inc()
        self._attempt_seconds.observe(seconds)

    def count_endpoints(self, phase: str, count: Callable[[], float]) -> None:
        """Register the gauge of a phase. `count` is called with each scrape."""
        self._endpoints.labels(phase).set_function(count)
