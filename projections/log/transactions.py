"""The boundaries of writes: the events of one command follow each other in the log, in one commit.

A command's n-th event has an id made of the command's id and n (`Cause.event_id`), so an event shows how many events of its
write come before it. A reader of pages must not cut a write in two: its events belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from projections.log.reader import LoggedEvent


def command_id(event: LoggedEvent) -> str:
    """The command that caused the event; of an event that another writer left without one, the event's own id."""
    metadata: dict[str, Any] = from_json(event.metadata)
    found = metadata.get("command_id")
    return found if isinstance(found, str) else str(event.event_id)


def before(event: LoggedEvent) -> int:
    """How many events of the same write come before this one."""
    try:
        index = event.event_id.int ^ UUID(command_id(event)).int
    except ValueError:
        return 0
    return index if index < event.position else 0


def writes(events: Sequence[LoggedEvent]) -> Iterator[Sequence[LoggedEvent]]:
    """The events, write by write."""
    for _, together in groupby(events, key=command_id):
        yield list(together)
