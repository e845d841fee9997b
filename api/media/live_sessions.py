"""Sessions of the encoders of Events: docs/reference/api/health.md#sessions-of-encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import Field

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.kernel.wire import Instant, Wire
from domain.kernel.errors import NotFound
from domain.media_event.aggregate import MediaEvent
from projections.publishing_points.queries import PointStates
from projections.sessions.store import SessionQueries, SessionRow

routes = Router("/health/live", tag="Health", surface=MEDIA)


class SessionEncoder(Wire):
    """An encoder of a session, and what it did since it was started."""

    name: str = Field(description="Its name in the channel.", examples=["enc-1"])
    type: str = Field(description="Its type in the channel.", examples=["ffmpeg"])
    running: bool = Field(description="Whether it runs now.")
    bytes: int = Field(description="Bytes that it sent, to all points together.", examples=[15300000])
    frames: int = Field(description="Pictures that it encoded.", examples=[1530])
    fps: float = Field(description="Pictures a second.", examples=[25.0])
    bitrate: float = Field(description="Bits a second, of all renditions together.", examples=[2000000.0])
    last_error: str = Field(description='What went wrong last; "": nothing.', examples=[""])

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> SessionEncoder:
        return cls.model_construct(
            name=str(found.get("name") or ""),
            type=str(found.get("type") or ""),
            running=bool(found.get("running")),
            bytes=int(found.get("bytes") or 0),
            frames=int(found.get("frames") or 0),
            fps=float(found.get("fps") or 0),
            bitrate=float(found.get("bitrate") or 0),
            last_error=str(found.get("last_error") or ""),
        )


class EncoderSession(Wire):
    """The encoders of a channel, as one session of an Event."""

    channel_id: str = Field(description="The channel.", examples=["0b0e3c52-63a5-4cbe-9ff0-7f2f0c7a0f31"])
    number: int = Field(description="The number of the session; a later one has a higher number.", examples=[1926423425])
    state: str = Field(
        description="`starting`, `running`, `waiting` (before it starts again), `handed_over`, `stopped` or `failed`.",
        examples=["running"],
    )
    host: str = Field(description="The machine of the worker.", examples=["studio-1"])
    started_at: Instant = Field(description="When it was started.")
    changed_at: Instant = Field(description="When its state last changed.")
    failures: int = Field(description="Failures in a row before this start.", examples=[0])
    restarts: int = Field(description="Starts before it under the same order.", examples=[0])
    reason: str = Field(description='Why it waits, failed or was stopped; "": it runs.', examples=[""])
    statistics_at: Instant | None = Field(description="When the encoders were last heard of; null: not yet.")
    encoders: list[SessionEncoder] = Field(description="The encoders, as they were last heard of.")

    @classmethod
    def of(cls, row: SessionRow) -> EncoderSession:
        encoders = [each for each in (row.statistics or {}).get("encoders", ()) if isinstance(each, dict)]
        return cls.model_construct(
            channel_id=row.key,
            number=row.number,
            state=str(row.state),
            host=row.host,
            started_at=row.started_at,
            changed_at=row.changed_at,
            failures=row.failures,
            restarts=row.restarts,
            reason=row.reason,
            statistics_at=row.statistics_at,
            encoders=[SessionEncoder.of(each) for each in encoders],
        )


@routes.get("/session/event/{eventId}", READ, response_model=list[EncoderSession])
async def get_encoder_sessions_of_event(
    request: Request, event_id: UUID, sessions: SessionQueries, points: PointStates
) -> Response:
    """The present or last encoder sessions of an Event, the latest first: an empty list where none ran."""
    if await points.of_event(event_id) is None:
        raise NotFound(MediaEvent.KIND, str(event_id))
    found = [EncoderSession.of(row) for row in await sessions.of_event(event_id)]
    return Response(200, found, headers=(("cache-control", "no-store"),))
