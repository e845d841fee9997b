"""Sessions of the encoders of Events: docs/reference/api/health.md#sessions-of-encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Instant, Wire
from domain.event.aggregate import MediaEvent
from domain.kernel.errors import NotFound
from projections.publishing_point.queries import PointStates
from projections.session.store import SessionQueries, SessionRow

routes = APIRouter(prefix="/api/health/live", tags=["Health"], route_class=MediaRoute)


class SessionEncoder(Wire):
    """An encoder of a session, and its statistics since its start."""

    name: str = Field(description="The name in the channel.", examples=["enc-1"])
    type: str = Field(description="The type in the channel.", examples=["ffmpeg"])
    running: bool = Field(description="True if it is running.")
    bytes: int = Field(description="Bytes sent to all points together.", examples=[15300000])
    frames: int = Field(description="Encoded pictures.", examples=[1530])
    fps: float = Field(description="Pictures per second.", examples=[25.0])
    bitrate: float = Field(description="Bits per second of all renditions together.", examples=[2000000.0])
    last_error: str = Field(description='The last error; "" if there was none.', examples=[""])

    @classmethod
    def of(cls, statistics: Mapping[str, Any]) -> SessionEncoder:
        return cls.model_construct(
            name=str(statistics.get("name") or ""),
            type=str(statistics.get("type") or ""),
            running=bool(statistics.get("running")),
            bytes=int(statistics.get("bytes") or 0),
            frames=int(statistics.get("frames") or 0),
            fps=float(statistics.get("fps") or 0),
            bitrate=float(statistics.get("bitrate") or 0),
            last_error=str(statistics.get("last_error") or ""),
        )


class EncoderSession(Wire):
    """The encoders of a channel, as one session of an Event."""

    channel_id: str = Field(description="The channel.", examples=["0b0e3c52-63a5-4cbe-9ff0-7f2f0c7a0f31"])
    number: int = Field(description="The number of the session; a later one has a higher number.", examples=[1926423425])
    state: str = Field(
        description="`starting`, `running`, `waiting` (before a restart), `handed_over`, `stopped` or `failed`.",
        examples=["running"],
    )
    host: str = Field(description="The machine of the worker.", examples=["studio-1"])
    started_at: Instant = Field(description="The time when it was started.")
    changed_at: Instant = Field(description="The time when its state last changed.")
    failures: int = Field(description="Failures in a row before this start.", examples=[0])
    restarts: int = Field(description="Previous starts under the same order.", examples=[0])
    reason: str = Field(description='The reason why it waits, failed or was stopped; "" while it runs.', examples=[""])
    statistics_at: Instant | None = Field(description="The time of the encoders' last report; null before the first.")
    encoders: list[SessionEncoder] = Field(description="The encoders according to their last report.")

    @classmethod
    def of(cls, row: SessionRow) -> EncoderSession:
        encoders = [encoder for encoder in (row.statistics or {}).get("encoders", ()) if isinstance(encoder, dict)]
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
            encoders=[SessionEncoder.of(encoder) for encoder in encoders],
        )


@routes.get("/session/event/{eventId}", dependencies=[READ], response_model=list[EncoderSession])
async def get_encoder_sessions_of_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    sessions: Service[SessionQueries],
    points: Service[PointStates],
) -> Response:
    """The current or last encoder sessions of an Event, the latest first; an empty list if none ran."""
    if await points.of_event(event_id) is None:
        raise NotFound(MediaEvent.KIND, str(event_id))
    shown = [EncoderSession.of(row) for row in await sessions.of_event(event_id)]
    return Response(shown, headers=(("cache-control", "no-store"),))
