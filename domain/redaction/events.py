"""Domain events about the log itself."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from domain.kernel.event import DomainEvent, FirstEvent


class Part(StrEnum):
    """A part of an event that can be erased: its own fields, or its actor and request."""

    CONTENT = "content"
    CAUSE = "cause"


class LogRedacted(FirstEvent):
    """Parts of earlier events were erased, in the same append. `log_redact()` and every verifier of the log read this event."""

    TOPIC: ClassVar[str] = "log.redacted"

    reason: str
    parts: tuple[Part, ...]
    positions: tuple[tuple[int, int], ...]


EVENTS: tuple[type[DomainEvent], ...] = (LogRedacted,)
