"""Channels: docs/reference/api/channels.md. Keys and passwords in their configuration are write-only."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from api.http.routing import Service, rules
from api.kernel.auth import WRITE, Role
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.wire import Label, Name, Text, Wire
from api.media.resource import Resource
from api.media.standard import StandardRoutes
from domain.channel.handlers import ConfigurationHandlers
from domain.kernel.ports import Outcome
from domain.record.kinds.channel import Channel as ChannelKind
from domain.record.kinds.channel import ChannelDetails
from domain.record.ports import RecordRow
from domain.record.record import Record

routes = APIRouter(prefix="/api/channel", tags=["Channels"], route_class=MediaRoute)

_CONFIGURATION: Final = (
    "The configuration, as a text that holds a JSON object. null: {}. Members srvaApiKey, apiKey and password are write-only: "
    'null or absent keeps them, "" clears them.'
)
_EXAMPLE: Final = (
    '{"statusCheckStrategy":"ALL","encoders":[{"name":"enc-1","resource":"encoder-1","streamingServer":{"type":"SRVA",'
    '"streamingServerSpecific":{"primaryPublishingPoint":{"resource":"origin-1","publishingPointUrl":'
    '"http://origin.example/live.isml","srvaApiKey":"secret"}}},"outputUrls":[{"streamProtocol":"HLS","liveCdnPrimaryUrl":'
    '"https://cdn.example/{contentId}/live.m3u8"}]}]}'
)


class UpdateChannelRequest(Wire):
    """Changes of a channel. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Channel one"}]})

    name: Name | None = Field(None, description="The name of the channel; not blank, not unique. null leaves it unchanged.")
    reference_id: Label | None = Field(None, description='An id in another system; not unique. null or "": no id, shown as "".')
    configuration_json: Text | None = Field(None, description=_CONFIGURATION)


class AddChannelRequest(UpdateChannelRequest):
    """A new channel. Its default configuration is {}."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Channel 1", "referenceId": "ch1", "configurationJson": _EXAMPLE}]}
    )

    name: Name = Field(description="The name of the channel; not blank, not unique.")


class Channel(Wire):
    """A channel in a response."""

    id: UUID = Field(description="The id of the channel; never changes.")
    name: str = Field(description="The name of the channel; not unique.")
    reference_id: str = Field(description='An id in another system; "" for none. Not unique.')
    configuration_json: str = Field(
        description="The configuration as it was sent, a text that holds a JSON object, with null for each key and password."
    )

    @classmethod
    def of(cls, row: RecordRow[ChannelDetails]) -> Channel:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id),
            name=details.name,
            reference_id=details.reference_id or "",
            configuration_json=details.configuration_json,
        )


CHANNELS = Resource(ChannelKind, "/api/channel", Channel.of)
(StandardRoutes(routes, CHANNELS, Channel).delete().list().by_id().by_reference())


_TAKEN: Final = {409: "Another channel sends to this publishing point of the built-in origin"}


@routes.post("/", dependencies=[WRITE], response_model=Channel)
@rules(respond=CHANNELS.respond, errors=_TAKEN)
async def add_channel(request: Request, body: AddChannelRequest, handlers: Service[ConfigurationHandlers]) -> Outcome[Record]:
    """Add a channel."""
    shares = Role.ADMIN in request.caller.roles
    return await handlers.register(ChannelKind, CHANNELS.values(body), invocation=request.invocation, shares=shares)


@routes.put("/{id}", dependencies=[WRITE], response_model=Channel)
@rules(respond=CHANNELS.respond, errors=_TAKEN)
async def update_channel(
    request: Request, id: UUID, body: UpdateChannelRequest, handlers: Service[ConfigurationHandlers]
) -> Outcome[Record]:
    """Change a channel. A key or password that is null or absent keeps its value; "" clears it."""
    shares = Role.ADMIN in request.caller.roles
    return await handlers.amend(ChannelKind, id, values=CHANNELS.values(body), invocation=request.invocation, shares=shares)
