"""Limits of what workers fetch, from the settings."""

from __future__ import annotations

from api.wiring.settings import Settings
from projections.kernel.sizes import GIB
from workers.playout_ports import ItemLimits
from workers.ports import DownloadLimits


def download_limits(settings: Settings) -> DownloadLimits:
    """Of jobs."""
    return DownloadLimits(
        size=settings.download_gib * GIB,
        free=settings.download_free_gib * GIB,
        rate=settings.download_kib_per_second * 1024,
        seconds=settings.download_hours * 3600,
    )


def playout_limits(settings: Settings) -> ItemLimits:
    """Of playouts."""
    return ItemLimits(size=settings.playout_gib * GIB, age=settings.playout_hours * 3600.0)
