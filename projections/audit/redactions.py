"""Whether the log says of each erased part that it was erased: a hash in the place of a part needs a later event `log.redacted`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic_core import from_json

from projections.audit.chain import LogDamaged, leaf_of

TOPIC: Final = "log.redacted"
REDACTED_METADATA: Final = '{"actor":"redacted","correlation_id":"redacted","command_id":"00000000-0000-0000-0000-000000000000"}'
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CAUSE: Final = "cause"
_CONTENT: Final = "content"

Range = list[int]
Parts = dict[str, list[Range]]


class Redactions:
    """Sees all events of a log, or of a part of it, in their order."""

    def __init__(self) -> None:
        self._awaited: dict[int, Parts] = {}

    def leaf(self, position: int, columns: Sequence[Any], *, recorded_micros: int) -> bytes:
        """The leaf of the next event, of its columns from the stream to the positions of its redactions. Raises `LogDamaged`."""
        topic, metadata, state, (metadata_hash, state_hash, metadata_by, state_by) = columns[2], columns[4], columns[5], columns[7:]
        if metadata_hash is not None:
            self._await(position, _CAUSE, by=metadata_by, fixed=metadata == REDACTED_METADATA)
        if state_hash is not None:
            self._await(position, _CONTENT, by=state_by, fixed=state == redacted_state(recorded_micros))
        if position in self._awaited:
            _compare(self._awaited.pop(position), position, said(state) if topic == TOPIC and state_hash is None else {})
        return leaf_of(columns)

    def _await(self, position: int, part: str, *, by: int | None, fixed: bool) -> None:
        if by is None or by <= position:
            raise LogDamaged(
                position, f"the {part} of the event {position} is missing, and the log does not say that it was erased"
            )
        if not fixed:
            raise LogDamaged(position, f"in the place of the erased {part} of the event {position} is another text")
        ranges = self._awaited.setdefault(by, {}).setdefault(part, [])
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])

    def finish(self, look: Callable[[int], tuple[str, bytes] | None]) -> None:
        """Look for the redactions that come after the last event seen. `look` gives topic and content of an event."""
        for position, parts in sorted(self._awaited.items()):
            found = look(position)
            _compare(parts, position, said(found[1]) if found is not None and found[0] == TOPIC else {})

    @property
    def awaited(self) -> Sequence[int]:
        """The positions of redactions that were not seen."""
        return sorted(self._awaited)


def said(state: bytes) -> Parts:
    """What a redaction says was erased: the positions of each part."""
    try:
        given = from_json(state)
        return {str(part): [[int(first), int(last)] for first, last in given["positions"]] for part in given["parts"]}
    except (ValueError, TypeError, KeyError):
        return {}


def _compare(found: Parts, redaction: int, named: Parts) -> None:
    for part, ranges in found.items():
        allowed = sorted(named.get(part, []))
        for first, last in ranges:
            if (missing := _outside(first, last, allowed)) is not None:
                raise LogDamaged(
                    missing,
                    f"the {part} of the event {missing} is missing, and the event {redaction} does not say that it was erased",
                )


def _outside(first: int, last: int, allowed: Sequence[Range]) -> int | None:
    """The first position of a range that is in none of the others, which are sorted."""
    for low, high in allowed:
        if low <= first <= high:
            first = high + 1
        if first > last:
            return None
    return first


def redacted_state(recorded_micros: int) -> bytes:
    """The text in the place of erased content."""
    if recorded_micros < 0:
        return b""
    at = _BEGINNING + timedelta(microseconds=recorded_micros)
    return b'{"timestamp":"%s","redacted":true}' % at.strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
