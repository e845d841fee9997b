"""Health of live streams, as reported by the publishing points of live Events. docs/reference/api/health.md#live-streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, RootModel

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Flag, Instant, Wire
from api.media.health_finding import FOUND, checked
from domain.channel.channel import StatusCheckStrategy
from domain.channel.hosts import NO_HOSTS, Hosts, ProvisionedHosts
from domain.channel.points import UNKNOWN, WatchedPoint
from domain.event.aggregate import MediaEvent
from domain.kernel.clock import iso
from domain.kernel.errors import NotFound
from domain.record.kinds.channel import Channel
from projections.publishing_point.points import ChannelPoints, ChannelPointsReader
from projections.publishing_point.queries import LiveEvent, PointState, PointStates, state_of

routes = APIRouter(prefix="/api/health/live", tags=["Health"], route_class=MediaRoute)

_ANSWERS: Final = {FOUND: "With `checkForErrors`: a publishing point has not started, or is not receiving data"}
_EXAMPLE: Final[Any] = {
    "8f51eaa1-decb-4863-89d3-9eb99768c67b": {
        "urls": [
            {
                "name": "enc-1",
                "url": "http://origin.example/live.isml",
                "state": "started",
                "hasStarted": True,
                "lastUpdated": "2031-01-02T21:00:00.000Z",
                "receivingData": True,
                "statusCheckStrategy": 2,
                "statusCheckStrategyString": "SRVA_API",
                "publishingPointIndex": 0,
                "encoderIndex": 0,
            }
        ]
    }
}


class StreamQuery(Wire):
    check_for_errors: Flag = Field(
        default=False,
        description="Answer with 415 if a publishing point has not started or is not receiving data. Default false.",
    )


class PublishingPointHealth(Wire):
    """A publishing point of a channel, and the last report of its server."""

    name: str = Field(description='The name of its encoder; "" without one.')
    url: str = Field(description="The address to which the encoder sends its stream, without user info, query and secrets.")
    state: str = Field(
        description="The state reported by the server, such as `started` or `idle`; `unknown`: the server has not reported."
    )
    has_started: bool = Field(description="True if the state is `started`.")
    last_updated: Instant | None = Field(description="The time of the server's last report; null if there was none.")
    receiving_data: bool = Field(description="True if data arrived in the last seconds: two samples differ.")
    status_check_strategy: int = Field(
        description="The strategy that determined the state, as a number; otherwise the configured strategy."
    )
    status_check_strategy_string: str = Field(description="The strategy, by name.")
    publishing_point_index: int = Field(description="0 for the primary point of the encoder, 1 for the secondary point.")
    encoder_index: int = Field(description="The index of the encoder in its channel.")


class PublishingPoints(Wire):
    urls: list[PublishingPointHealth] = Field(description="The publishing points of the channel.")


class LiveStreamHealth(RootModel[dict[UUID, PublishingPoints]]):
    """The publishing points of live Events, by the ids of the Events."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})


class LiveStreams:
    """Combines the configuration of channels with the last reports of the prober."""

    def __init__(self, states: PointStates, channels: ChannelPointsReader, *, hosts: ProvisionedHosts) -> None:
        self._states = states
        self._channels = channels
        self._hosts = hosts

    async def all(self) -> tuple[dict[str, Any], bool]:
        """Return the answer, and True if it contains an error."""
        return await self._shown(await self._states.of_live_events())

    async def of_channel(self, channel: UUID) -> tuple[dict[str, Any], bool]:
        return await self._shown(_existing(await self._states.of_channel(channel), Channel.KIND, channel))

    async def of_event(self, event: UUID) -> tuple[dict[str, Any], bool]:
        return await self._shown(_existing(await self._states.of_event(event), MediaEvent.KIND, event))

    async def _shown(self, events: Sequence[LiveEvent]) -> tuple[dict[str, Any], bool]:
        versions = {event.channel: event.version for event in events if event.channel is not None and event.version is not None}
        channels = await self._channels.of(versions)
        channel_of = {
            event.id: channel_points
            for event in events
            if event.channel and (channel_points := channels.get(event.channel)) is not None
        }
        hosts = await self._hosts.hosts_of([event for event, channel in channel_of.items() if channel.names_host])
        shown: dict[str, Any] = {}
        faulty = False
        for event in events:
            points = _points(channel_of.get(event.id), hosts.get(event.id, NO_HOSTS))
            urls = [_url(point, state_of(point, event.states)) for point in points]
            shown[str(event.id)] = {"urls": urls}
            faulty = faulty or any(map(_is_faulty, urls))
        return shown, faulty


def _existing(events: list[LiveEvent] | None, kind: str, key: UUID) -> list[LiveEvent]:
    if events is None:
        raise NotFound(kind, str(key))
    return events


def _points(channel: ChannelPoints | None, hosts: Hosts) -> Sequence[WatchedPoint]:
    if channel is None:
        return ()
    return channel.at(hosts).points if hosts else channel.points


def _url(point: WatchedPoint, state: PointState | None) -> dict[str, Any]:
    """Return the point as JSON."""
    strategy = point.strategy if state is None or state.state == UNKNOWN else StatusCheckStrategy(state.strategy)
    return {
        "name": point.name,
        "url": point.shown,
        "state": UNKNOWN if state is None else state.state,
        "hasStarted": state is not None and state.has_started,
        "lastUpdated": None if state is None or state.last_updated is None else iso(state.last_updated),
        "receivingData": state is not None and state.receiving,
        "statusCheckStrategy": int(strategy),
        "statusCheckStrategyString": strategy.name,
        "publishingPointIndex": point.index,
        "encoderIndex": point.encoder,
    }


def _is_faulty(url: dict[str, Any]) -> bool:
    unchecked = url["statusCheckStrategy"] == StatusCheckStrategy.NONE
    return not unchecked and not (url["hasStarted"] and url["receivingData"])


def _response(answer: tuple[dict[str, Any], bool], query: StreamQuery) -> Response:
    shown, faulty = answer
    return checked(shown, has_findings=query.check_for_errors and faulty)


@routes.get("/stream/", dependencies=[READ], response_model=LiveStreamHealth)
@rules(answers=_ANSWERS)
async def check_live_streams(request: Request, query: Annotated[StreamQuery, Query()], streams: Service[LiveStreams]) -> Response:
    """The publishing points of all live Events, as their servers reported in the last seconds."""
    return _response(await streams.all(), query)


@routes.get("/stream/{channelId}", dependencies=[READ], response_model=LiveStreamHealth)
@rules(answers=_ANSWERS)
async def check_live_streams_of_channel(
    request: Request,
    channel_id: Annotated[UUID, Path(alias="channelId")],
    query: Annotated[StreamQuery, Query()],
    streams: Service[LiveStreams],
) -> Response:
    """The publishing points of the live Events of one channel."""
    return _response(await streams.of_channel(channel_id), query)


@routes.get("/stream/event/{eventId}", dependencies=[READ], response_model=LiveStreamHealth)
@rules(answers=_ANSWERS)
async def check_live_stream_of_event(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[StreamQuery, Query()],
    streams: Service[LiveStreams],
) -> Response:
    """The publishing points of one Event; empty while it is not live."""
    return _response(await streams.of_event(event_id), query)
