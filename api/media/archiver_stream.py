"""Archiver streams: document 2, "Archiver Streams"; POST and PUT are ours, decisions.md "Health, logs, archiver streams"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from api.kernel.answer import Answer, iso
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Flag, Instant, Integer, Name, Wire, Words
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.records.kinds.archiver_stream import ArchiverStream, check_times
from domain.records.record import Record, RegisterRecord
from projections.archiver_stream.numbers import ArchiverStreamNumbers
from projections.log.ledger import Plan
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/archiverstream", tag="Archiver streams")

_FORMATS = ["HLS", "HDS", "DASH", "SMOOTH"]


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _once(formats: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(formats))


Format = Annotated[
    Literal["HLS", "HDS", "DASH", "SMOOTH"], BeforeValidator(_upper), WithJsonSchema({"type": "string", "enum": _FORMATS})
]
Formats = Annotated[tuple[Format, ...], AfterValidator(_once)]
"""In any case, upper case inside; twins collapse."""


class ArchiverStreamBody(Wire):
    """null clears `expiresAt`, `uploaded` and `streamingFormats`; all else is never null, so null leaves it as it is."""

    profile_id: Name | None = None
    capture_id: Name | None = None
    start_time: Instant | None = None
    end_time: Instant | None = None
    expires_at: Instant | None = None
    ism_url: Words | None = None
    uploaded: Flag | None = None
    streaming_formats: Formats | None = None


class NewArchiverStreamBody(ArchiverStreamBody):
    profile_id: Name
    capture_id: Name
    start_time: Instant
    end_time: Instant
    ism_url: Words


class ArchiverStreamWire(Wire):
    id: Integer
    profile_id: str
    capture_id: str
    start_time: Instant
    end_time: Instant
    expires_at: Instant | None
    ism_url: str
    uploaded: bool
    created_at: Instant
    updated_at: Instant
    streaming_formats: Formats


def shaped(stream: RecordRow) -> dict[str, Any]:
    details = stream.details
    return {
        "id": int(stream.id),
        "profileId": details.profile_id,
        "captureId": details.capture_id,
        "startTime": iso(details.start_time),
        "endTime": iso(details.end_time),
        "expiresAt": iso(details.expires_at) if details.expires_at is not None else None,
        "ismUrl": details.ism_url,
        "uploaded": details.uploaded,
        "createdAt": iso(stream.date_created),
        "updatedAt": iso(stream.date_modified),
        "streamingFormats": details.streaming_formats,
    }


STREAMS = Resource(ArchiverStream, "/api/archiverstream", shaped)
StandardRoutes(routes, STREAMS, ArchiverStreamWire, key=Integer).withdraw().by_id()


@routes.post("/", WRITE, answers=ArchiverStreamWire, status=201)
async def add_archiver_stream(call: Call, body: NewArchiverStreamBody, bus: CommandBus, numbers: ArchiverStreamNumbers) -> Answer:
    """Add an archiver stream."""

    async def plan() -> Plan[Record]:
        return Plan(RegisterRecord(await numbers.draw(), ArchiverStream, STREAMS.values(body), new=True))

    return await bus.send(call, plan, STREAMS.created)


@routes.put("/{id}", WRITE, answers=ArchiverStreamWire)
async def amend_archiver_stream(call: Call, id: Integer, body: ArchiverStreamBody, bus: CommandBus) -> Answer:
    """Change an archiver stream."""
    check_times(body.start_time, body.end_time)  # bad input is told before a stream that is not there
    return await bus.send(call, STREAMS.amend(id, body), STREAMS.written)


@routes.get("/", READ, answers=list[ArchiverStreamWire])
async def list_archiver_streams(call: Call, records: RecordQueries) -> Answer:
    """All archiver streams, by id. Those that have expired are among them."""
    rows = await records.all(ArchiverStream.KIND)
    return STREAMS.listed(sorted(rows, key=lambda row: int(row.id)))
