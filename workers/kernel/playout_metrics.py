"""Metrics of playouts, as the process counts them that plays."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

PLAYED: Final = "played"
SKIPPED: Final = "skipped"


class PlayoutMetrics:
    """Of all playouts of the process together."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        self._items = Counter(
            "medialedger_playout_items",
            "Items of playlists that went on the air, or were left out because they could not be played",
            ("outcome",),
            registry=registry,
        )
        self._repeated = Counter(
            "medialedger_playout_repeated_frames",
            "Frames that were shown once more because the next one of the item did not come in time",
            registry=registry,
        )
        self._late = Gauge(
            "medialedger_playout_late_seconds",
            "How far the playout that was looked at last is behind the clock",
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
