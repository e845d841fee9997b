"""Usage of content keys, totalled in memory, so that many uses of a key are written once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.content_key.aggregate import Usage


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A use of a key. `systems` are the names of the DRM systems that it was requested for."""

    key: UUID
    client: str
    systems: tuple[str, ...]
    speke_version: str
    correlation_id: str


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The uses of one key within an interval. `client` and `correlation_id` are those of the first use."""

    client: str
    correlation_id: str
    usage: Usage

    def __add__(self, later: UsageTotal) -> UsageTotal:
        return UsageTotal(self.client, self.correlation_id, self.usage + later.usage)


class UsageTotals:
    """Totals of at most `most` keys. Uses of further keys are only counted, in `dropped`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._totals: dict[UUID, UsageTotal] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._totals)

    def add(self, use: KeyUse, *, at: datetime) -> None:
        if use.key not in self._totals and len(self._totals) >= self._most:
            self.dropped += 1
            return
        usage = Usage(1, at, at, tuple(sorted({*use.systems})), (use.speke_version,))
        total, before = UsageTotal(use.client, use.correlation_id, usage), self._totals.get(use.key)
        self._totals[use.key] = total if before is None else before + total

    def take(self) -> dict[UUID, UsageTotal]:
        """Return all totals and reset them."""
        totals, self._totals = self._totals, {}
        return totals
