"""Flows: docs/reference/api/flows.md. The keys in their configuration are write-only."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Name, Text, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.channel.flow import TASK_ENGINE, FlowConfiguration, SrvaSettings, Stream, StreamingPoint, first_flow
from domain.channel.handlers import ConfigurationHandlers
from domain.kernel.ports import Outcome
from domain.record.configured_record import ConfiguredDetails
from domain.record.kinds.flow import Flow as FlowKind
from domain.record.ports import RecordRow
from domain.record.record import Record
from projections.record.queries import RecordQueries

routes = APIRouter(prefix="/api/flow", tags=["Flows"], route_class=MediaRoute)

_CONFIGURATION: Final = (
    "The configuration, as a text that holds a JSON object with `flows`; required for a new flow. null leaves it unchanged. "
    'Members srvaApiKey, apiKey and password are write-only: null or absent keeps them, "" clears them.'
)
_EXAMPLE: Final = (
    '{"flows":[{"name":"main","type":"TaskEngine","ismUrl":"http://origin.example/vod/{contentId}.ism",'
    '"storageUrlPublic":"https://files.example","taskEngineSpecific":{"apiUrl":"http://engine.example",'
    '"flowGuiUrl":"http://gui.example"},"streamingServer":{"type":"SRVA","streamingServerSpecific":{'
    '"primaryPublishingPoint":{"srvaApi":"http://a.example","srvaApiKey":"secret"},'
    '"secondaryPublishingPoint":{"srvaApi":"http://b.example","srvaApiKey":"secret"}}},"outputUrls":[{"streamProtocol":"HLS",'
    '"vodCdnPrimaryUrl":"https://cdn.example/{contentId}/{packaging}/master.m3u8",'
    '"vodOriginPrimaryUrl":"http://origin.example/{contentId}/{packaging}/master.m3u8"}]}]}'
)


class UpdateFlowRequest(Wire):
    """Changes of a flow. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Flow one"}]})

    name: Name | None = Field(
        None, description="The name of the flow; required for a new flow, not blank, not unique. null leaves it unchanged."
    )
    configuration_json: Text | None = Field(None, description=_CONFIGURATION)


class AddOrUpdateFlowRequest(UpdateFlowRequest):
    """A flow to add or change. Without an `id`, or with a new one, `name` and `configurationJson` are required."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Flow 1", "configurationJson": _EXAMPLE}]})

    id: UUID | None = Field(None, description="The flow to change; unknown: a new flow with this id. Absent or null: a new flow.")


class Flow(Wire):
    """A flow in a response."""

    id: UUID = Field(description="The id of the flow; never changes.")
    name: str = Field(description="The name of the flow; not unique.")
    configuration_json: str = Field(
        description="The configuration as it was sent, a text that holds a JSON object with `flows`, with null for each key and "
        "password."
    )

    @classmethod
    def of(cls, row: RecordRow[ConfiguredDetails]) -> Flow:
        return cls.model_construct(id=UUID(row.id), name=row.details.name, configuration_json=row.details.configuration_json)


class FlowDetails(Wire):
    """The addresses of the job engine of a flow."""

    api_url: str = Field(description="The address of the job engine.")
    flow_gui_url: str = Field(description="The address of its user interface.")


class FlowPublishingPoint(Wire):
    """The address of one streaming server of a flow, without its key."""

    srva_api: str = Field(description="The address of the server's API.")

    @classmethod
    def of(cls, point: StreamingPoint) -> FlowPublishingPoint:
        return cls.model_construct(srva_api=point.srva_api)


class StreamingServerDetails(Wire):
    """The addresses of the streaming servers of a flow."""

    type: str = Field(description="Always `SRVA`.")
    primary_publishing_point: FlowPublishingPoint | None = Field(description="The first server; null with SRVB settings.")
    secondary_publishing_point: FlowPublishingPoint | None = Field(description="The second server; null with SRVB settings.")


class OutputStream(Wire):
    """The addresses of a stream on demand."""

    stream_protocol: int = Field(description="The protocol, as a number: 0 HLS, 1 HSS, 2 DASH, 3 HDS, 4 HLSe.")
    vod_cdn_primary_url: str | None = Field(description="The first address at the CDN.")
    vod_cdn_secondary_url: str | None = Field(description="The second address at the CDN; null when not configured.")
    vod_origin_primary_url: str | None = Field(description="The first address at the origin.")
    vod_origin_secondary_url: str | None = Field(description="The second address at the origin; null when not configured.")
    vod_private_url: str | None = Field(
        description="The address for callers that may see unpublished content; null when not configured."
    )

    @classmethod
    def of(cls, stream: Stream) -> OutputStream:
        return cls.model_construct(
            stream_protocol=int(stream.stream_protocol),
            vod_cdn_primary_url=stream.vod_cdn_primary_url,
            vod_cdn_secondary_url=stream.vod_cdn_secondary_url,
            vod_origin_primary_url=stream.vod_origin_primary_url,
            vod_origin_secondary_url=stream.vod_origin_secondary_url,
            vod_private_url=stream.vod_private_url,
        )


class TaskEngine(Wire):
    """The first flow configuration of a flow, parsed and without its keys."""

    name: str = Field(description="The name of the first flow configuration.")
    flow_type: int = Field(description="Always 0, TaskEngine.")
    flow_details: FlowDetails = Field(description="The addresses of the job engine.")
    streaming_server_details: StreamingServerDetails = Field(
        description="The addresses of the streaming servers, without their keys."
    )
    output_streams: list[OutputStream] = Field(description="The streams on demand.")
    callback_urls: list[str] = Field(description="The addresses that jobs of the flow are reported to.")
    ism_url: str = Field(description="The address of the ISM manifest.")

    @classmethod
    def of(cls, flow: FlowConfiguration) -> TaskEngine:
        engine, server = flow.task_engine_specific, flow.streaming_server
        settings = server.streaming_server_specific
        points = settings if isinstance(settings, SrvaSettings) else None
        return cls.model_construct(
            name=flow.name,
            flow_type=TASK_ENGINE,
            flow_details=FlowDetails.model_construct(api_url=engine.api_url, flow_gui_url=engine.flow_gui_url),
            streaming_server_details=StreamingServerDetails.model_construct(
                type=server.type,
                primary_publishing_point=FlowPublishingPoint.of(points.primary_publishing_point) if points else None,
                secondary_publishing_point=FlowPublishingPoint.of(points.secondary_publishing_point) if points else None,
            ),
            output_streams=[OutputStream.of(stream) for stream in flow.output_urls],
            callback_urls=list(engine.callback_urls),
            ism_url=flow.ism_url,
        )


FLOWS = Resource(FlowKind, "/api/flow", Flow.of)
StandardRoutes(routes, FLOWS, Flow, absent=204).delete().list().by_id()


@routes.post("/", dependencies=[WRITE], response_model=Flow)
@rules(respond=FLOWS.respond)
async def add_or_update_flow(
    request: Request, body: AddOrUpdateFlowRequest, handlers: Service[ConfigurationHandlers]
) -> Outcome[Record]:
    """Add a flow, or update the flow with this id."""
    return await handlers.register(FlowKind, FLOWS.values(body), key=body.id, invocation=request.invocation)


@routes.put("/{id}", dependencies=[WRITE], response_model=Flow)
@rules(respond=FLOWS.respond)
async def update_flow(
    request: Request, id: UUID, body: UpdateFlowRequest, handlers: Service[ConfigurationHandlers]
) -> Outcome[Record]:
    """Change a flow. A key that is null or absent keeps its value; "" clears it."""
    return await handlers.amend(FlowKind, id, values=FLOWS.values(body), invocation=request.invocation)


@routes.get("/taskengines/{id}", dependencies=[READ], response_model=TaskEngine)
async def get_task_engine(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The first configuration of a flow as one object, without its keys."""
    flow = await records.require(FlowKind, id)
    return Response(TaskEngine.of(first_flow(flow.details.configuration_json)), etag=flow.version, settled=True)
