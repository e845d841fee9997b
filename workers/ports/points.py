"""The status of a publishing point."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.channel.channel import StatusCheckStrategy
from domain.channel.points import WatchedPoint


@dataclass(frozen=True, slots=True)
class PointReport:
    """The report of a server about a publishing point. `state` is the server's word in lower case. `mark` is a text that changes
    while data arrive, such as the time of the last segment, and "" if the server reports nothing of the kind. `receiving` is True
    or False if the server states whether it receives data, else None."""

    strategy: StatusCheckStrategy
    state: str
    last_updated: datetime | None = None
    mark: str = ""
    receiving: bool | None = None


class PointSilent(Exception):
    """Raised when the state of a publishing point is unknown. Its text is one sentence without any part of the point's address.
    `kind` is that of `OutboundFailed`, or refused (this product does not send requests to that address), unaskable (the point has
    no address to query) or answer (the answer does not state it)."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind

    @property
    def is_at_fault(self) -> bool:
        """Return True if the point is at fault, and not this side or the configuration."""
        return self.kind not in ("refused", "unaskable", "local")


class PointStatusReader(Protocol):
    """Queries the server of a publishing point for its state."""

    async def ask(self, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None) -> PointReport:
        """Return the report of the point. Raise `PointSilent` within some seconds. `key` is that of the point's `srvaApi`. If
        several strategies apply, `first` is tried before the others."""
        ...


class PointStatuses(dict[StatusCheckStrategy, PointStatusReader]):
    """What reads the status of a publishing point, by the strategy that the channel names."""
