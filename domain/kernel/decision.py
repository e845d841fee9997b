"""The decision of one command on one aggregate. It is pure: the executor loads before it and appends after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from domain.kernel.aggregate import NO_REFERENCES, AggregateRoot, References
from domain.kernel.command import Command
from domain.kernel.errors import DomainError, Malformed, NotFound, PreconditionFailed
from domain.kernel.event import DomainEvent


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a command. `aggregate` is the state after the events, `previous` the state before them, and `before` the
    references of the previous state."""

    command: Command[Any]
    aggregate: AggregateRoot
    events: Sequence[DomainEvent]
    previous: AggregateRoot | None
    before: References


def decide(
    command: Command[Any], aggregate: AggregateRoot | None, *, if_match: frozenset[int] | None = None, at: datetime
) -> Decision:
    """Apply a command to a copy of the aggregate, so that the caller's aggregate never changes.

    Malformed input and unknown keys are reported before a failed `If-Match`, which is reported before any other refusal.
    """
    version = aggregate.shown_version if aggregate is not None else 0
    stale = if_match is not None and version not in if_match
    try:
        decided = command.decide(aggregate.copy() if aggregate is not None else None, at=at)
    except (Malformed, NotFound):
        raise
    except DomainError:
        if stale:
            raise PreconditionFailed(version) from None
        raise
    if stale:
        raise PreconditionFailed(version)
    before = aggregate.references() if aggregate is not None else NO_REFERENCES
    return Decision(command, decided, cast("Sequence[DomainEvent]", decided.collect_events()), aggregate, before)
