"""Checks of a playlist that need nothing but the playlist. docs/reference/api/compositions.md lists the members of each item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from domain.composition.values import MOST_ITEMS, MOST_MARKERS, CompositionKind, Item, ItemType, Marker, Playlist
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.media_files import is_published_path
from domain.kernel.stream_time import NO_TIME, StreamPoint, stream_point
from domain.kernel.urls import url_fault

_MOST_ERRORS: Final = 50
_SUPPORTED: Final = {
    CompositionKind.STANDARD: (ItemType.EVENT,),
    CompositionKind.ENCODER: (ItemType.EVENT, ItemType.DIRECT_FULL_MP4),
}
_FLAGS: Final = ("frameAccurate", "outputDescription")
_DURATION: Final = re.compile(r"\d\d:[0-5]\d:[0-5]\d", re.ASCII)
_LONGEST_PATH: Final = 2048
_DEEPEST: Final = 32
_BEGINNING: Final = StreamPoint(time_span=NO_TIME, has_value=True)
"""The start of the source, where an item without a start begins."""


def check_playlist(playlist: Playlist, *, kind: CompositionKind, event_id: UUID, field: str) -> None:
    """Check a playlist. Raises `Malformed` with every fault, up to fifty. `field` is the path of the items in the request."""
    count = len(playlist.items)
    if not 0 < count <= MOST_ITEMS:
        raise Malformed.at(field, f"must have 1 to {MOST_ITEMS} items")
    if sum(len(item.markers or ()) for item in playlist.items) > MOST_MARKERS:
        raise Malformed.at(field, f"may have at most {MOST_MARKERS} markers altogether")
    faults: list[FieldError] = []
    for index, item in enumerate(playlist.items):
        faults += _faults(item, kind=kind, event_id=event_id, field=f"{field}[{index}]")
        if len(faults) >= _MOST_ERRORS:
            break
    if faults:
        raise Malformed(*faults[:_MOST_ERRORS])


def event_of(item: Item) -> UUID | None:
    """Return the Event that an item shows; None if it shows none, or if its value is not an id."""
    try:
        return UUID(item.value) if item.type is ItemType.EVENT else None
    except ValueError:
        return None


def _faults(item: Item, *, kind: CompositionKind, event_id: UUID, field: str) -> Iterator[FieldError]:
    if item.type not in _SUPPORTED[kind]:
        names = " or ".join(f"{item_type.value} {item_type.name}" for item_type in _SUPPORTED[kind])
        yield FieldError(f"{field}.type", f"must be {names}")
        return
    fault = _event_fault(item, event_id) if item.type is ItemType.EVENT else _file_fault(item.value)
    if fault is not None:
        yield FieldError(f"{field}.value", fault)
    if _is_deep(item.properties):
        yield FieldError(f"{field}.properties", f"may not be nested more than {_DEEPEST} levels deep")
    if kind is CompositionKind.STANDARD:
        yield from _trim_faults(item, field)
    elif item.markers is not None:
        yield FieldError(f"{field}.markers", "are only allowed in playlists of which a film is made")


def _event_fault(item: Item, event_id: UUID) -> str | None:
    shown = event_of(item)
    if shown is None:
        return "must be the id of an Event"
    return "may not be the Event that has the playlist" if shown == event_id else None


def _file_fault(value: str) -> str | None:
    if "://" in value:
        return url_fault(value)
    return None if len(value) <= _LONGEST_PATH and is_published_path(value) else "must be a URL, or a path below the media root"


def _trim_faults(item: Item, field: str) -> Iterator[FieldError]:
    points: dict[str, StreamPoint] = {}
    for name in ("start", "end"):
        try:
            points[name] = _point(item.properties.get(name), field=f"{field}.properties.{name}")
        except Malformed as refusal:
            yield from refusal.errors
    for name in _FLAGS:
        if not isinstance(item.properties.get(name), bool | None):
            yield FieldError(f"{field}.properties.{name}", "must be true or false")
    start, end = points.get("start", _BEGINNING), points.get("end", StreamPoint())
    start = start if start.has_value else _BEGINNING
    if end.has_value and _comparable(start, end) and not start.is_before(end):
        yield FieldError(f"{field}.properties.end", "must be after the start")
    for index, marker in enumerate(item.markers or ()):
        yield from _marker_faults(marker, start, end, field=f"{field}.markers[{index}]")


def _marker_faults(marker: Marker, start: StreamPoint, end: StreamPoint, *, field: str) -> Iterator[FieldError]:
    if not _DURATION.fullmatch(marker.duration):
        yield FieldError(f"{field}.duration", "must be hh:mm:ss")
    try:
        at = _point(marker.start_at, field=f"{field}.startAt")
    except Malformed as refusal:
        yield from refusal.errors
        return
    before, after = at.is_before(start), end.has_value and _comparable(at, end) and not at.is_before(end)
    if before or after:
        yield FieldError(f"{field}.startAt", "must be inside the item")


def _point(value: object, *, field: str) -> StreamPoint:
    if isinstance(value, str) or value is None:
        return stream_point(value, field=field)
    raise Malformed.at(field, "must be a text: an ISO 8601 date-time, or a time hh:mm:ss[.fff]")


def _comparable(point: StreamPoint, other: StreamPoint) -> bool:
    return point.is_absolute == other.is_absolute


def _is_deep(node: object) -> bool:
    """Return True if the node is nested too deeply. It is searched level by level, so that a deeply nested text cannot exhaust the
    stack."""
    level = [node]
    for _ in range(_DEEPEST + 1):
        level = [entry for parent in level for entry in _entries(parent)]
        if not level:
            return False
    return True


def _entries(node: object) -> Iterable[object]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()
