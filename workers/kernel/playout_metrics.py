"""Metrics of playouts, counted by the process that plays."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

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
