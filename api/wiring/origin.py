"""The built-in origin that the settings describe, and its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from api.wiring.settings import Settings
from domain.kernel.clock import system_clock
from domain.kernel.encryption import IngestKeys

if TYPE_CHECKING:
    from workers.origin.knowledge import PointDirectory
    from workers.origin.live_origin import LiveOrigin

ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


def live_origin(settings: Settings, keys: IngestKeys, *, directory: PointDirectory | None = None) -> LiveOrigin:
    """Return the origin that accepts tokens of these keys."""
    from projections.kernel.sizes import GIB
    from workers.adapters.free_space import free_bytes
    from workers.adapters.media_directory import MediaDirectory
    from workers.origin.limits import OriginLimits
    from workers.origin.live_origin import LiveOrigin

    limits = OriginLimits(
        size=settings.origin_gib * GIB,
        free=settings.origin_free_gib * GIB,
        hours=settings.origin_hours,
        window=float(settings.origin_dvr_seconds),
    )
    return LiveOrigin(
        settings.origin_root,
        keys=keys,
        limits=limits,
        files=MediaDirectory(settings.origin_root),
        free=free_bytes,
        clock=system_clock,
        directory=directory,
    )


def base_url(host: str, *, port: int) -> str:
    """Return a URL to open. A server that listens on all addresses is shown with the loopback address."""
    shown = ANY_ADDRESS.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def own_origin(settings: Settings) -> str | None:
    """Return the address of the built-in origin; None if there is none."""
    if settings.origin_url is not None or not settings.origin:
        return settings.origin_url
    return base_url(settings.host, port=settings.port)
