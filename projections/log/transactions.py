"""The boundaries of writes: the events of one command are consecutive in the log and belong to one commit.

The id of a command's n-th event is derived from the command's id and n (`Cause.event_id`), so an event shows how many events of its
write precede it. A reader that pages through the log must not split a write, since its events belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from projections.log.reader import LoggedEvent


def command_id(event: LoggedEvent) -> str:
    """Return the id of the command that caused the event; the event's own id if another writer stored no command id."""
    metadata: dict[str, Any] = from_json(event.metadata)
    identifier = metadata.get("command_id")
    return identifier if isinstance(identifier, str) else str(event.event_id)


def before(event: LoggedEvent) -> int:
    """Return the number of events of the same write that precede this one."""
    try:
        index = event.event_id.int ^ UUID(command_id(event)).int
    except ValueError:
        return 0
    return index if index < event.position else 0


def writes(events: Sequence[LoggedEvent]) -> Iterator[Sequence[LoggedEvent]]:
    """Yield the events, grouped by write."""
    for _, together in groupby(events, key=command_id):
        yield list(together)
