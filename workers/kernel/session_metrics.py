"""Metrics of sessions, counted by the process that runs them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


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
