"""Conversion between events of the log and Kafka records: CloudEvents 1.0, Kafka binding, binary mode.

The value is the JSON of the event, byte for byte as in the log. It is empty if the topic does not accept a record of that size;
`dataref` then contains its address. The envelope is in the headers. The key is the id of the aggregate. `source` names the log.
Extensions: `epoch` (of the log, when the record was sent), `sequence` (the version, of a fixed width, so that it sorts as text),
`position` (in the log), `after` (the position before the page of the relay with this record; a page always contains whole writes),
and the cause of the event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json, to_json

from domain.kernel.cause import kind_of
from projections.consumers.timeline import Origin
from projections.log.reader import LoggedEvent

SOURCE: Final = "/medialedger/logs/"
CAUSE: Final = {
    "actor": "ce_actor",
    "correlation_id": "ce_correlationid",
    "command_id": "ce_commandid",
    "causation_id": "ce_causationid",
    "end_user": "ce_enduser",
    "trace_parent": "ce_traceparent",
}
Headers = Iterable[tuple[str, bytes | None]]
"""The headers of a record that was read. They may come from anyone who can write to the topic."""
_DIGITS: Final = re.compile(rb"[0-9]{1,19}")
_LARGEST: Final = 2**63 - 1
_FIXED: Final = [("content-type", b"application/json"), ("ce_specversion", b"1.0")]


def headers(event: LoggedEvent, *, after: int, origin: Origin) -> list[tuple[str, bytes]]:
    """Return the headers of the record of an event. The state of an event that was too large is empty. `after` is the position
    before its page."""
    cause: Mapping[str, Any] = from_json(event.metadata)
    return [
        *_FIXED,
        ("ce_source", f"{SOURCE}{origin.log_id}".encode()),
        ("ce_epoch", b"%d" % origin.epoch),
        ("ce_id", str(event.event_id).encode()),
        ("ce_type", event.topic.encode()),
        ("ce_subject", event.key.encode()),
        ("ce_time", _time(event.recorded_at)),
        ("ce_sequence", b"%019d" % event.version),
        ("ce_position", b"%d" % event.position),
        ("ce_after", b"%d" % after),
        *((("ce_actorkind", kind.encode()),) if (kind := kind_of(cause)) is not None else ()),
        *((name, str(cause[member]).encode()) for member, name in CAUSE.items() if member in cause),
        *([] if event.state else [("ce_dataref", f"/api/audit/events/?after={event.position - 1}&pageSize=1".encode())]),
    ]


def _time(moment: datetime) -> bytes:
    """Return the time in the format of RFC 3339."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds").encode() + b"Z"


def milliseconds(moment: datetime) -> int:
    """Return the timestamp of a Kafka record. It never decreases along the log, so an offset can be found by it."""
    return int(moment.timestamp() * 1000)


def identity(headers: Headers) -> tuple[int, UUID, Origin]:
    """Return the position and the id of a record's event, and its origin. Raises KeyError or ValueError for a record of another
    product."""
    values = _values(headers)
    source = values["ce_source"].decode()
    if not source.startswith(SOURCE):
        raise ValueError(f"its source is {source[:100]}")
    origin = Origin(UUID(source.removeprefix(SOURCE)), _number(values["ce_epoch"]))
    return _number(values["ce_position"]), UUID(values["ce_id"].decode()), origin


def logged_event(headers: Headers, value: bytes | None) -> tuple[LoggedEvent, int]:
    """Return the event as it is in the log, except for a state that was too large, and the position before its page. Raises
    KeyError or ValueError for a record of another product."""
    if value is None:
        raise ValueError("it has no value")
    values = _values(headers)
    topic = values["ce_type"].decode()
    cause = {member: values[name].decode() for member, name in CAUSE.items() if name in values}
    event = LoggedEvent(
        _number(values["ce_position"]),
        f"{topic.partition('.')[0]}:{values['ce_subject'].decode()}",
        _number(values["ce_sequence"]),
        topic,
        UUID(values["ce_id"].decode()),
        value,
        to_json(cause).decode(),
        datetime.fromisoformat(values["ce_time"].decode()),
    )
    return event, _number(values["ce_after"])


def _values(headers: Headers) -> dict[str, bytes]:
    """Return the headers without those that have no value. Anyone who can write to the topic can send such headers."""
    return {name: value for name, value in headers if value is not None}


def _number(text: bytes) -> int:
    """Return a position or another number within the range of the log. Raises ValueError."""
    if not _DIGITS.fullmatch(text) or int(text) > _LARGEST:
        raise ValueError("it has a number outside the range of a log")
    return int(text)
