"""Domain events about the log itself."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from domain.kernel.event import DomainEvent, FirstEvent


class Part(StrEnum):
    """What of an event can be erased: its own fields, or who caused it and in which request."""

    CONTENT = "content"
    CAUSE = "cause"


class LogRedacted(FirstEvent):
    """Parts of earlier events were erased, in the same append. Read by `log_redact()` and by every verifier of the log."""

    TOPIC: ClassVar[str] = "log.redacted"

    reason: str
    parts: tuple[Part, ...]
    positions: tuple[tuple[int, int], ...]


EVENTS: tuple[type[DomainEvent], ...] = (LogRedacted,)
