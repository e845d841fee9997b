"""A sample of a publishing point: asks its server, with the key from the vault."""

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
"""Seconds for which the strategy that succeeded last is tried first; afterwards all are tried in their order."""


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of asking a server: a report, or the reason why there is none. `seconds` is the time that it took."""

    report: PointReport | None
    silent: PointSilent | None
    seconds: float

    @property
    def state(self) -> str:
        return "silent" if self.report is None else self.report.state


class PointKeys:
    """The keys of channels' points. They are decrypted once for each version of a channel."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def of(self, channel: UUID, points: ChannelPoints) -> Mapping[str, str]:
        """Return the keys by their place in the configuration. A key that cannot be decrypted is left out."""
        keys: dict[str, str] = {}
        for point in points.points:
            ref = points.secrets.get(point.key_place) if point.srva_api else None
            if ref is not None:
                try:
                    key = await self._vault.read(ref.reference, owner=Channel.stream(channel))
                except DecryptionFailed:
                    continue
                if key is not None:
                    keys[point.key_place] = key
        return keys


async def look_at(
    point: WatchedPoint, statuses: Mapping[StatusCheckStrategy, PointStatus], *, key: str | None, first: StatusCheckStrategy | None
) -> LookResult:
    """Ask the server of a point once."""
    begun = monotonic()
    try:
        report = await statuses[point.strategy].ask(point, key=key, first=first)
    except PointSilent as silent:
        return LookResult(None, silent, monotonic() - begun)
    return LookResult(report, None, monotonic() - begun)
