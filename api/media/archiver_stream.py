"""Archiver streams; see docs/reference/api/archiver-streams.md."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Instant, Integer, Name, Wire, Words
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.kernel.ports import Outcome
from domain.record.handlers import ArchiverStreamHandlers
from domain.record.kinds.archiver_stream import ArchiverStream as ArchiverStreamRecord
from domain.record.kinds.archiver_stream import ArchiverStreamDetails
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.record.queries import BY_NUMBER, RecordQueries

routes = APIRouter(prefix="/api/archiverstream", tags=["Archiver streams"], route_class=MediaRoute)

_FORMATS = ["HLS", "HDS", "DASH", "SMOOTH"]


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _without_duplicates(formats: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(formats))


Format = Annotated[
    Literal["HLS", "HDS", "DASH", "SMOOTH"], BeforeValidator(_upper), WithJsonSchema({"type": "string", "enum": _FORMATS})
]
"""A streaming format, accepted in any case and stored in upper case."""
Formats = Annotated[tuple[Format, ...], AfterValidator(_without_duplicates)]


class UpdateArchiverStreamRequest(Wire):
    """Changes of an archiver stream. null clears `expiresAt`, `uploaded` and `streamingFormats`, and leaves the other fields
    unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"uploaded": True, "expiresAt": "2032-01-01T00:00:00.000Z"}]})

    profile_id: Name | None = Field(None, description="The id of the recording profile; not blank. null leaves it unchanged.")
    capture_id: Name | None = Field(None, description="The id of the recording; not blank. null leaves it unchanged.")
    start_time: Instant | None = Field(None, description="The time when the recording began. null leaves it unchanged.")
    end_time: Instant | None = Field(
        None, description="The time when the recording ended; not before `startTime`. null leaves it unchanged."
    )
    expires_at: Instant | None = Field(
        None, description="The time when the recording expires; nothing is deleted then. null, the default: never."
    )
    ism_url: Words | None = Field(None, description="The address of the ISM manifest; not blank. null leaves it unchanged.")
    uploaded: Flag | None = Field(None, description="True if the recording was uploaded; false for a new stream. null means false.")
    streaming_formats: Formats | None = Field(
        None, description="HLS, HDS, DASH or SMOOTH, each once; none for a new stream. null clears them."
    )


class AddArchiverStreamRequest(UpdateArchiverStreamRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "profileId": "p1",
                    "captureId": "c1",
                    "startTime": "2031-01-01T10:00:00.000Z",
                    "endTime": "2031-01-01T11:00:00.000Z",
                    "ismUrl": "http://archive.example/c1.ism",
                    "streamingFormats": ["HLS", "DASH"],
                }
            ]
        }
    )

    profile_id: Name = Field(description="The id of the recording profile; required, not blank.")
    capture_id: Name = Field(description="The id of the recording; required, not blank.")
    start_time: Instant = Field(description="The time when the recording began; required.")
    end_time: Instant = Field(description="The time when the recording ended; required, not before `startTime`.")
    ism_url: Words = Field(description="The address of the ISM manifest; required, not blank.")


class ArchiverStream(Wire):
    """An archiver stream in a response."""

    id: Integer = Field(description="The number of the stream; never used again.")
    profile_id: str = Field(description="The id of the recording profile.")
    capture_id: str = Field(description="The id of the recording.")
    start_time: Instant = Field(description="The time when the recording began.")
    end_time: Instant = Field(description="The time when the recording ended; not before `startTime`.")
    expires_at: Instant | None = Field(description="The time when the recording expires; nothing is deleted then. null: never.")
    ism_url: str = Field(description="The address of the ISM manifest.")
    uploaded: bool = Field(description="True if the recording was uploaded.")
    created_at: Instant = Field(description="The time when the record was added.")
    updated_at: Instant = Field(description="The time when the record last changed.")
    streaming_formats: Formats = Field(description="HLS, HDS, DASH or SMOOTH, each once.")

    @classmethod
    def of(cls, row: RecordRow[ArchiverStreamDetails]) -> ArchiverStream:
        details = row.details
        return cls.model_construct(
            id=int(row.id),
            profile_id=details.profile_id,
            capture_id=details.capture_id,
            start_time=details.start_time,
            end_time=details.end_time,
            expires_at=details.expires_at,
            ism_url=details.ism_url,
            uploaded=details.uploaded,
            created_at=row.date_created,
            updated_at=row.date_modified,
            streaming_formats=cast("Formats", details.streaming_formats),
        )


STREAMS = Resource(ArchiverStreamRecord, "/api/archiverstream", ArchiverStream.of)
StandardRoutes(routes, STREAMS, ArchiverStream, key=Integer).delete().by_id()


@routes.post("/", dependencies=[WRITE], response_model=ArchiverStream, status_code=201)
@rules(typed_body=True, respond=STREAMS.respond_created)
async def add_archiver_stream(
    request: Request, body: AddArchiverStreamRequest, handlers: Service[ArchiverStreamHandlers]
) -> Outcome[Record]:
    """Add an archiver stream."""
    return await handlers.add(STREAMS.values(body), invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=ArchiverStream)
@rules(typed_body=True, respond=STREAMS.respond)
async def update_archiver_stream(
    request: Request, id: Integer, body: UpdateArchiverStreamRequest, handlers: Service[ArchiverStreamHandlers]
) -> Outcome[Record]:
    """Change an archiver stream. Absent fields keep their values."""
    return await handlers.change(id, STREAMS.values(body), invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[ArchiverStream])
async def list_archiver_streams(request: Request, records: Service[RecordQueries]) -> Response:
    """All archiver streams by id, including expired ones."""
    return await STREAMS.array(records.parts(ArchiverStreamRecord, order=BY_NUMBER))
