"""Channels: decisions.md, "Records the documents only name". Keys and passwords in their configuration are write-only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.kernel.wire import Label, Name, Text, Wire
from api.media.configurations import Configurations
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.kernel.ids import new_id
from domain.records.kinds.channel import Channel
from domain.records.record import AmendRecord, RegisterRecord
from projections.records.queries import RecordRow

routes = Routes("/channel", tag="Channels")


class ChannelBody(Wire):
    name: Name | None = None
    reference_id: Label | None = None
    configuration_json: Text | None = None


class NewChannelBody(ChannelBody):
    name: Name


class ChannelWire(Wire):
    """`configurationJson` as it was sent, with null for every key and password."""

    id: UUID
    name: str
    reference_id: str
    configuration_json: str


def shaped(channel: RecordRow) -> dict[str, Any]:
    details = channel.details
    return {
        "id": channel.id,
        "name": details.name,
        "referenceId": details.reference_id or "",
        "configurationJson": details.configuration_json,
    }


CHANNELS = Resource(Channel, "/api/channel", shaped)
(StandardRoutes(routes, CHANNELS, ChannelWire).withdraw().list().by_id().by_reference())


@routes.post("/", WRITE, answers=ChannelWire)
async def add_channel(call: Call, body: NewChannelBody, bus: CommandBus, configurations: Configurations) -> Answer:
    """Add a channel."""
    key = new_id()
    values, sealed = configurations.values(CHANNELS, body, key=key)
    return await bus.send(call, RegisterRecord(key, Channel, values, new=True, sealed=sealed), CHANNELS.written)


@routes.put("/{id}", WRITE, answers=ChannelWire)
async def amend_channel(call: Call, id: UUID, body: ChannelBody, bus: CommandBus, configurations: Configurations) -> Answer:
    """Change a channel. A key or password that is null or absent keeps its value, "" clears it."""
    values, sealed = configurations.values(CHANNELS, body, key=id)
    return await bus.send(call, AmendRecord(id, Channel, values, sealed=sealed), CHANNELS.written)
