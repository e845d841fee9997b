"""Checks that the log records each erasure: a hash in place of a part needs a later `log.redacted` event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic_core import from_json

from projections.audit.chain import LogDamaged, leaf_of
from projections.log.hash_chain import leaf

TOPIC: Final = "log.redacted"
REDACTED_METADATA: Final = '{"actor":"redacted","correlation_id":"redacted","command_id":"00000000-0000-0000-0000-000000000000"}'
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CAUSE: Final = "cause"
_CONTENT: Final = "content"

Range = list[int]
Parts = dict[str, list[Range]]


class Redactions:
    """Checks the events of a log, or of a part of it, in their order."""

    def __init__(self) -> None:
        self._awaited: dict[int, Parts] = {}

    def leaf(self, position: int, columns: Sequence[Any], *, recorded_micros: int) -> bytes:
        """Return the leaf of the next event, from its columns from the stream to the positions of its redactions. Raise
        `LogDamaged`."""
        stream, version, topic, event_id, metadata, state, salt, metadata_hash, state_hash, metadata_by, state_by = columns
        if metadata_hash is None and state_hash is None and not self._awaited and salt is not None:
            return leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata, state=state, salt=salt)
        if metadata_hash is not None:
            self._await(position, _CAUSE, by=metadata_by, fixed=metadata == REDACTED_METADATA)
        if state_hash is not None:
            self._await(position, _CONTENT, by=state_by, fixed=state == redacted_state(recorded_micros))
        if position in self._awaited:
            _compare(self._awaited.pop(position), position, parse_parts(state) if topic == TOPIC and state_hash is None else {})
        return leaf_of(columns)

    def _await(self, position: int, part: str, *, by: int | None, fixed: bool) -> None:
        if by is None or by <= position:
            raise LogDamaged(
                position, f"the {part} of the event {position} is missing, and the log does not say that it was erased"
            )
        if not fixed:
            raise LogDamaged(position, f"the erased {part} of the event {position} was replaced by another text")
        ranges = self._awaited.setdefault(by, {}).setdefault(part, [])
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])

    def finish(self, look: Callable[[int], tuple[str, bytes] | None]) -> None:
        """Check the redactions that come after the last event. `look` returns the topic and content of an event."""
        for position, parts in sorted(self._awaited.items()):
            event = look(position)
            _compare(parts, position, parse_parts(event[1]) if event is not None and event[0] == TOPIC else {})

    @property
    def awaited(self) -> Sequence[int]:
        """The positions of redactions that have not been read yet."""
        return sorted(self._awaited)


def parse_parts(state: bytes) -> Parts:
    """Return the positions of each part that a redaction records as erased; an empty mapping if the state cannot be parsed."""
    try:
        document = from_json(state)
        return {str(part): [[int(first), int(last)] for first, last in document["positions"]] for part in document["parts"]}
    except (ValueError, TypeError, KeyError):
        return {}


def _compare(erased: Parts, redaction: int, named: Parts) -> None:
    for part, ranges in erased.items():
        allowed = sorted(named.get(part, []))
        for first, last in ranges:
            if (missing := _outside(first, last, allowed)) is not None:
                raise LogDamaged(
                    missing,
                    f"the {part} of the event {missing} is missing, and the event {redaction} does not say that it was erased",
                )


def _outside(first: int, last: int, allowed: Sequence[Range]) -> int | None:
    """Return the first position of a range that is in none of the other ranges, which are sorted; None if all are."""
    for low, high in allowed:
        if low <= first <= high:
            first = high + 1
        if first > last:
            return None
    return first


def redacted_state(recorded_micros: int) -> bytes:
    """Return the text in place of erased content."""
    if recorded_micros < 0:
        return b""
    at = _BEGINNING + timedelta(microseconds=recorded_micros)
    return b'{"timestamp":"%s","redacted":true}' % at.strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
