"""A logged event as a Kafka record and back: CloudEvents 1.0, Kafka binding, binary mode.

The value is the event's own JSON, byte for byte as the log holds it; the envelope lies in headers. The key is the aggregate's id.
Extensions: `sequence` (the version), `position` (in the log), `after` (everything up to here lies before this record's page of the
relay, which always holds whole writes), and who caused it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json, to_json

from projections.log.tail import LoggedEvent

SOURCE = "/medialedger"
CAUSE = {"actor": "ce_actor", "correlation_id": "ce_correlationid", "command_id": "ce_commandid", "causation_id": "ce_causationid"}
_FIXED = [("content-type", b"application/json"), ("ce_specversion", b"1.0"), ("ce_source", SOURCE.encode())]


def headers(event: LoggedEvent, *, after: int) -> list[tuple[str, bytes]]:
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
    """The timestamp of a Kafka record. It never runs backwards along the log, so an offset can be found by it."""
    return int(moment.timestamp() * 1000)


def position(headers: Iterable[tuple[str, bytes]]) -> int:
    return int(dict(headers)["ce_position"])


def logged(headers: Iterable[tuple[str, bytes]], value: bytes) -> tuple[LoggedEvent, int]:
    """The event as the log holds it, and what its page lies behind. Raises KeyError or ValueError for what is no record of ours."""
    known = dict(headers)
    topic = known["ce_type"].decode()
    cause = {member: known[name].decode() for member, name in CAUSE.items() if name in known}
    event = LoggedEvent(
        int(known["ce_position"]),
        f"{topic.partition('.')[0]}:{known['ce_subject'].decode()}",
        int(known["ce_sequence"]),
        topic,
        UUID(known["ce_id"].decode()),
        value,
        to_json(cause).decode(),
        datetime.fromisoformat(known["ce_time"].decode()),
    )
    return event, int(known["ce_after"])
