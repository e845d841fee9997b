"""Warnings to clients that schedule two Events on one channel at the same time."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.values import EventDetails
from domain.kernel.clock import iso
from domain.kernel.ports import Outcome
from projections.event.queries import EventQueries

_NAMED = 3
"""The most Events that a warning names."""


async def overlap_warnings(outcome: Outcome[Any], events: EventQueries) -> tuple[tuple[str, str], ...]:
    """Return a header Warning for each Event of a write that starts by the schedule while another Event is scheduled or live on its
    channel. Nothing is read unless the write changed the channel, or the times at which the schedule acts."""
    warnings = []
    for event, before in zip(outcome.aggregates, outcome.previous, strict=False):
        if isinstance(event, MediaEvent) and _rescheduled(event, before):
            details = event.details
            assert details.channel_id is not None
            assert details.auto_start_at is not None
            others = await events.overlapping(
                details.channel_id, details.auto_start_at, end=details.scheduled_end, without=UUID(event.key), limit=_NAMED + 1
            )
            if others:
                warnings.append(("Warning", f"299 - {json.dumps(_text(details.channel_id, others))}"))
    return tuple(warnings)


def _rescheduled(event: MediaEvent, before: MediaEvent | None) -> bool:
    use = _use(event.details)
    return use is not None and (before is None or use != _use(before.details))


def _use(details: EventDetails) -> tuple[UUID, datetime, datetime | None] | None:
    """Return the channel that the schedule takes, and the times; None if it takes none."""
    if details.date_deleted is not None or details.channel_id is None or details.auto_start_at is None:
        return None
    return details.channel_id, details.auto_start_at, details.scheduled_end


def _text(channel_id: UUID, others: list[tuple[UUID, datetime | None, datetime | None]]) -> str:
    named = ", ".join(f"{key} ({_time(start)} to {_time(end)})" for key, start, end in others[:_NAMED])
    more = " and others" if len(others) > _NAMED else ""
    noun = "another Event" if len(others) == 1 else "other Events"
    return (
        f"{noun} on the channel {channel_id} at the same time: {named}{more}; only one of them is on the air at a time, and the"
        " others wait until the channel is free"
    )


def _time(time: datetime | None) -> str:
    return "open" if time is None else iso(time)
