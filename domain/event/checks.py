"""Checks of values that are written to an Event. Bad input is reported before a missing Event or a state that forbids the write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from domain.event.values import WITH_METADATA, EventDetails, EventState
from domain.kernel.errors import FieldError, Malformed

_HOLDS_JSON = ("drm_json", "task_engine_json")
_NOT_NEGATIVE = ("dvr_length", "max_bitrate", "min_bitrate")
PERIODS = (
    ("scheduled_start", "scheduled_end"),
    ("scheduled_channel_start", "scheduled_channel_end"),
    ("published_start", "published_end"),
    ("instant_vod_start", "instant_vod_end"),
    ("archiver_start", "archiver_end"),
    ("scheduled_provision_at", "scheduled_terminate_at"),
)
"""The start and the end of each period."""
_NO_TIMES = EventDetails()


def check(changes: Mapping[str, Any]) -> None:
    """Raise `Malformed` for values that no Event may have. The API checks too; this covers commands of workers and the CLI."""
    wrong = [
        FieldError(name, "must not be negative")
        for name in _NOT_NEGATIVE
        if (number := changes.get(name)) is not None and number < 0
    ]
    wrong += [
        FieldError(name, "must hold JSON") for name in _HOLDS_JSON if (text := changes.get(name)) is not None and not _is_json(text)
    ]
    if wrong:
        raise Malformed(*wrong)
    check_periods(changes)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def check_periods(changes: Mapping[str, Any], details: EventDetails = _NO_TIMES) -> None:
    """Raise `Malformed` for a write that names a time of a period and leaves its end before its start.

    A stored Event may have such times: a write that names neither of them is not refused.
    """
    wrong = []
    for start, end in PERIODS:
        if start not in changes and end not in changes:
            continue
        begins, ends = (changes.get(name, getattr(details, name)) for name in (start, end))
        if begins is None or ends is None or ends >= begins:
            continue
        if end in changes:
            wrong.append(FieldError(to_camel(end), f"must not be before {to_camel(start)}"))
        else:
            wrong.append(FieldError(to_camel(start), f"must not be after {to_camel(end)}"))
    if wrong:
        raise Malformed(*wrong)


def check_has_metadata(state: EventState) -> None:
    """Raise `Malformed` for a state in which the metadata of files are not adopted."""
    if state not in WITH_METADATA:
        raise Malformed.at("id", f"an Event in the state {state.name} has no metadata")
