"""Flows: document 3, "Flow" and "Flows". The keys in their configuration are write-only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.kernel.wire import Name, Text, Wire
from api.media.configurations import Configurations
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.configuration.flow import task_engine
from domain.kernel.ids import new_id
from domain.records.kinds.flow import Flow
from domain.records.record import AmendRecord, RegisterRecord
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/flow", tag="Flows")


class FlowBody(Wire):
    name: Name | None = None
    configuration_json: Text | None = None


class NewFlowBody(FlowBody):
    """Without an `id`, or with one that is new, `name` and `configurationJson` are required."""

    id: UUID | None = None


class FlowWire(Wire):
    """`configurationJson` as it was sent, with null for every key."""

    id: UUID
    name: str
    configuration_json: str


class FlowDetailsWire(Wire):
    api_url: str
    flow_gui_url: str


class ServerPointWire(Wire):
    srva_api: str


class ServerDetailsWire(Wire):
    type: str
    primary_publishing_point: ServerPointWire | None
    secondary_publishing_point: ServerPointWire | None


class OutputStreamWire(Wire):
    stream_protocol: int
    vod_cdn_primary_url: str | None
    vod_cdn_secondary_url: str | None
    vod_origin_primary_url: str | None
    vod_origin_secondary_url: str | None
    vod_private_url: str | None


class TaskEngineWire(Wire):
    """The first flow configuration, parsed. `flowType` 0 is TaskEngine."""

    name: str
    flow_type: int
    flow_details: FlowDetailsWire
    streaming_server_details: ServerDetailsWire
    output_streams: list[OutputStreamWire]
    callback_urls: list[str]
    ism_url: str


def shaped(flow: RecordRow) -> dict[str, Any]:
    return {"id": flow.id, "name": flow.details.name, "configurationJson": flow.details.configuration_json}


FLOWS = Resource(Flow, "/api/flow", shaped)
StandardRoutes(routes, FLOWS, FlowWire, absent=204).withdraw().list().by_id()


@routes.post("/", WRITE, answers=FlowWire)
async def add_or_update_flow(call: Call, body: NewFlowBody, bus: CommandBus, configurations: Configurations) -> Answer:
    """Add a flow, or update the one with this id."""
    key = body.id or new_id()
    values, sealed = configurations.values(FLOWS, body, key=key)
    return await bus.send(call, RegisterRecord(key, Flow, values, new=body.id is None, sealed=sealed), FLOWS.written)


@routes.put("/{id}", WRITE, answers=FlowWire)
async def amend_flow(call: Call, id: UUID, body: FlowBody, bus: CommandBus, configurations: Configurations) -> Answer:
    """Change a flow. A key that is null or absent keeps its value, "" clears it."""
    values, sealed = configurations.values(FLOWS, body, key=id)
    return await bus.send(call, AmendRecord(id, Flow, values, sealed=sealed), FLOWS.written)


@routes.get("/taskengines/{id}", READ, answers=TaskEngineWire)
async def task_engine_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """A flow's first configuration as one object, without its keys."""
    found = await records.known(Flow.KIND, id)
    return Answer(200, task_engine(found.details.configuration_json), etag=found.version)
