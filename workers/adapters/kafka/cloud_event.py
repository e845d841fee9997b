"""Conversion between events of the log and Kafka records: CloudEvents 1.0, Kafka binding, binary mode.

The value is the JSON of the event, byte for byte as the log holds it. The envelope is in the headers. The key is the id of the
aggregate. Extensions: `sequence` (the version), `position` (in the log), `after` (the position before the page of the relay with
this record; a page always holds whole writes), and who caused the event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json, to_json

from projections.log.reader import LoggedEvent

SOURCE = "/medialedger"
CAUSE = {"actor": "ce_actor", "correlation_id": "ce_correlationid", "command_id": "ce_commandid", "causation_id": "ce_causationid"}
_FIXED = [("content-type", b"application/json"), ("ce_specversion", b"1.0"), ("ce_source", SOURCE.encode())]


def headers(event: LoggedEvent, *, after: int) -> list[tuple[str, bytes]]:
    """The headers of the record of an event. `after` is the position before its page."""
    cause: Mapping[str, Any] = from_json(event.metadata)
    return [
        *_FIXED,
        ("ce_id", str(event.event_id).encode()),
        ("ce_type", event.topic.encode()),
        ("ce_subject", event.key.encode()),
        ("ce_time", event.recorded_at.astimezone(UTC).isoformat(timespec="microseconds").encode()),
        ("ce_sequence", b"%d" % event.version),
        ("ce_position", b"%d" % event.position),
        ("ce_after", b"%d" % after),
        *((name, str(cause[member]).encode()) for member, name in CAUSE.items() if member in cause),
    ]


def milliseconds(moment: datetime) -> int:
    """The timestamp of a Kafka record. It never decreases along the log, so an offset can be found by it."""
    return int(moment.timestamp() * 1000)


def position(headers: Iterable[tuple[str, bytes]]) -> int:
    return int(dict(headers)["ce_position"])


def logged(headers: Iterable[tuple[str, bytes]], value: bytes) -> tuple[LoggedEvent, int]:
    """The event as the log holds it, and the position before its page. Raises KeyError or ValueError for a record of
    another product."""
    values = dict(headers)
    topic = values["ce_type"].decode()
    cause = {member: values[name].decode() for member, name in CAUSE.items() if name in values}
    event = LoggedEvent(
        int(values["ce_position"]),
        f"{topic.partition('.')[0]}:{values['ce_subject'].decode()}",
        int(values["ce_sequence"]),
        topic,
        UUID(values["ce_id"].decode()),
        value,
        to_json(cause).decode(),
        datetime.fromisoformat(values["ce_time"].decode()),
    )
    return event, int(values["ce_after"])
