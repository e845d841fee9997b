"""A redaction of the log: the events that lost content, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from domain.redaction import events
from domain.redaction.events import LogRedacted, Part


class Redaction(AggregateRoot):
    """An append that erased content. It never changes."""

    KIND: ClassVar[str] = "log"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    reason: str
    parts: tuple[Part, ...]
    positions: tuple[tuple[int, int], ...]

    @classmethod
    def record(cls, key: UUID, *, reason: str, parts: Sequence[Part], positions: Iterable[int], at: datetime) -> Self:
        return cls._begin(LogRedacted, key, at, reason=reason, parts=tuple(parts), positions=tuple(ranges(positions)))

    def _when_redacted(self, event: LogRedacted) -> None:
        self.reason, self.parts, self.positions = event.reason, event.parts, event.positions

    def _to_snapshot(self) -> dict[str, Any]:
        return {"reason": self.reason, "parts": list(self.parts), "positions": [list(bounds) for bounds in self.positions]}

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        self.reason, self.parts = details["reason"], tuple(map(Part, details["parts"]))
        self.positions = tuple((first, last) for first, last in details["positions"])


LogRedacted.AGGREGATE = Redaction


def ranges(positions: Iterable[int]) -> list[tuple[int, int]]:
    """Return the positions as ranges without gaps, each with its first and last position."""
    merged: list[tuple[int, int]] = []
    for position in sorted(set(positions)):
        if merged and merged[-1][1] == position - 1:
            merged[-1] = (merged[-1][0], position)
        else:
            merged.append((position, position))
    return merged
