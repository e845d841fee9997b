"""Totals of Event lists, from the tallies of the view if the filter has only one part, or a range of days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from projections.event.filters import EventFilter, Ids
from projections.event.view import EVENT_VIEW
from projections.kernel.sql.tallies import total, totals

_DAY: Final = timedelta(days=1)
Total = tuple[str, dict[str, Any]]
"""An SQL expression and its parameters."""


def tallied(filter_: EventFilter, ids: Ids) -> Total | None:
    """Return the total without reading every Event that matches; None if they must be counted."""
    used = {part for part in _PARTS if getattr(filter_, part)} | ids.keys()
    if used <= {"states", "scheduled_from", "scheduled_to"}:
        states = sorted({int(state) for state in filter_.states})
        if used - {"states"}:
            return _of_days(filter_, states)
        return _of(filter_, "state", states) if states else _of(filter_, "all", [""])
    if len(used) > 1:
        return None
    [part] = used
    keys = ids[part] if part in ids else [""] if part == "contains_flow" else [getattr(filter_, part)]
    if part not in _DIMENSIONS or (part in _OVERLAPPING and len(keys) > 1):
        return None
    return _of(filter_, _DIMENSIONS[part], keys)


_PARTS: Final = {field.name for field in fields(EventFilter)} - {"deleted", "order_column", "descending", "window"}
_OVERLAPPING: Final = frozenset({"tags", "categories"})
"""The parts of which an Event may have several, so that their totals cannot be added."""
_DIMENSIONS: Final = {
    "room": "room",
    "room_id": "room",
    "event_type": "event_type",
    "event_type_id": "event_type",
    "channel": "channel",
    "tags": "tag",
    "tag_id": "tag",
    "categories": "category",
    "category_id": "category",
    "contains_flow": "flow",
}


OF_STATES: Final = totals(EVENT_VIEW.name, EVENT_VIEW.version, dimension="state")
"""A query for the number of Events in each state."""


def _of(filter_: EventFilter, dimension: str, values: Sequence[object]) -> Total:
    condition = "dimension = %(dimension)s AND deleted = %(deleted)s AND value = ANY(%(values)s)"
    return total(EVENT_VIEW.name, EVENT_VIEW.version, condition=condition), {
        "dimension": dimension,
        "deleted": filter_.deleted,
        "values": [str(value) for value in values],
    }


def _of_days(filter_: EventFilter, states: list[int]) -> Total | None:
    """Return the total of whole days from the tallies, plus the counted parts of the first and the last day."""
    begin, end = filter_.scheduled_from, filter_.scheduled_to
    try:
        first = None if begin is None else _midnight(begin) + _DAY
    except OverflowError:
        return None
    after_last = None if end is None else _midnight(end)
    if first is not None and after_last is not None and first >= after_last:
        return None
    condition = "dimension = 'day' AND deleted = %(deleted)s"
    parameters: dict[str, Any] = {"deleted": filter_.deleted}
    counts = []
    listed = "e.deleted" if filter_.deleted else "NOT e.deleted"
    if states:
        condition += " AND value = ANY(%(values)s)"
        listed += " AND e.state = ANY(%(counted_states)s)"
        parameters |= {"values": [str(state) for state in states], "counted_states": states}
    if begin is not None and first is not None:
        condition += " AND day >= %(first)s"
        counts.append(_count(f"{listed} AND e.scheduled_start >= %(begin)s AND e.scheduled_start < %(first_midnight)s"))
        parameters |= {"first": first.date(), "begin": begin, "first_midnight": first}
    if end is not None and after_last is not None:
        condition += " AND day < %(after_last)s"
        counts.append(_count(f"{listed} AND e.scheduled_start >= %(last_midnight)s AND e.scheduled_start <= %(end)s"))
        parameters |= {"after_last": after_last.date(), "end": end, "last_midnight": after_last}
    return " + ".join([total(EVENT_VIEW.name, EVENT_VIEW.version, condition=condition), *counts]), parameters


def _count(condition: str) -> str:
    return f"(SELECT count(*) FROM event_view e WHERE {condition})"


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
