"""Publishers for publishing points, chosen by the URL of the point."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from domain.channel.encoding import PointPlan
from workers.adapters.encoders.cmaf_point import CmafPoint
from workers.adapters.encoders.hls_point import HlsPoint
from workers.adapters.encoders.point import Point, Sending, shown
from workers.adapters.encoders.rtmp import PORTS
from workers.adapters.encoders.rtmp_point import RtmpPoint
from workers.adapters.encoders.tracks import Track
from workers.ports.encoders import EncoderFailed
from workers.ports.outbound import OutboundConnections, OutboundFailed, OutboundRefused

_PATIENCE: Final = 8.0


class RefusedPoint(Point):
    """A point that cannot be sent to. Its statistics give the reason."""

    def __init__(self, plan: PointPlan, sending: Sending, *, why: str) -> None:
        super().__init__(plan, sending)
        self.record.refused(why)

    def begin(self, tracks: Sequence[Track]) -> None:
        return None

    async def finish(self, *, final: bool) -> None:
        return None

    async def abort(self) -> None:
        return None


def points_for(plans: Sequence[PointPlan], sending: Sending, *, client: OutboundConnections) -> Sequence[Point]:
    """Return the publishers of the plans. Raises `EncoderFailed` if none of them can be sent to."""
    points: list[Point] = []
    faults = [] if plans else ["The encoder has no known publishing point."]
    for plan in plans:
        try:
            points.append(_point(plan, sending, client=client))
        except EncoderFailed as fault:
            faults.append(str(fault))
            points.append(RefusedPoint(plan, sending, why=str(fault)))
    if len(faults) >= len(points):
        raise EncoderFailed(" ".join(faults))
    return points


def _point(plan: PointPlan, sending: Sending, *, client: OutboundConnections) -> Point:
    try:
        parts = urlsplit(plan.url)
    except ValueError:
        raise EncoderFailed(f"The URL of the publishing point {plan.index} cannot be parsed.") from None
    match parts.scheme.lower():
        case "http" | "https" if parts.path.rstrip("/").lower().endswith(".isml"):
            return CmafPoint(plan, sending, client=client)
        case "http" | "https":
            return HlsPoint(plan, sending, client=client)
        case "rtmp" | "rtmps":
            return RtmpPoint(plan, sending, client=client)
    raise EncoderFailed(
        f"The publishing point {plan.index} has an unsupported protocol; supported are http, https, rtmp and rtmps."
    )


async def reachable(points: Sequence[PointPlan], *, client: OutboundConnections) -> str | None:
    """Return a sentence that names the points that do not answer; None if all do."""
    faults = await asyncio.gather(*(_fault(each, client) for each in points))
    return " ".join(fault for fault in faults if fault) or None


async def _fault(plan: PointPlan, client: OutboundConnections) -> str:
    nothing = Sending(0, lambda: False, lambda _: {}, segment=1, window=1)
    try:
        _point(plan, nothing, client=client)
    except EncoderFailed as fault:
        return str(fault)
    parts = urlsplit(plan.url)
    scheme = parts.scheme.lower()
    try:
        if scheme in PORTS:
            _, writer = await client.connect(parts.netloc, port=parts.port or PORTS[scheme], secure=scheme == "rtmps")
            writer.close()
        else:
            await client.request("GET", plan.url, seconds=_PATIENCE, most=0)
    except (OutboundRefused, OutboundFailed) as fault:
        return f"{shown(plan.url)}: {fault}"
    return ""
