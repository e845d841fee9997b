"""One look at a publishing point: asks its server with the key from the vault, and words what came of it as a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final
from uuid import UUID

from domain.configuration.channel import StatusCheckStrategy
from domain.configuration.points import WatchedPoint
from domain.kernel.errors import DecryptionFailed
from domain.records.kinds.channel import Channel
from projections.publishing_points.points import ChannelPoints
from projections.vault.vault import Vault
from workers.ports import PointReport, PointSilent, PointStatus

AGAIN: Final = 60.0
"""Seconds for which the strategy that succeeded last is tried first; then all are tried in their order."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look found: a report, or why there is none. `seconds` is how long it took."""

    report: PointReport | None
    silent: PointSilent | None
    seconds: float

    @property
    def state(self) -> str:
        return "silent" if self.report is None else self.report.state


class PointKeys:
    """The keys of channels' points. Opened once for each version of a channel."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def of(self, channel: UUID, points: ChannelPoints) -> Mapping[str, str]:
        """By their place in the configuration. One that cannot be opened is left out."""
        found: dict[str, str] = {}
        for point in points.points:
            ref = points.secrets.get(point.key_place) if point.srva_api else None
            if ref is not None:
                try:
                    key = await self._vault.read(ref.reference, owner=Channel.stream(channel))
                except DecryptionFailed:
                    continue
                if key is not None:
                    found[point.key_place] = key
        return found


async def look_at(
    point: WatchedPoint, statuses: Mapping[StatusCheckStrategy, PointStatus], *, key: str | None, first: StatusCheckStrategy | None
) -> Looked:
    """Asks once."""
    begun = monotonic()
    try:
        report = await statuses[point.strategy].ask(point, key=key, first=first)
    except PointSilent as silent:
        return Looked(None, silent, monotonic() - begun)
    return Looked(report, None, monotonic() - begun)
