"""The schema of a channel's configuration: docs/reference/api/channels.md.

Every member is optional, and null counts as absent. Other members are allowed at every level. A member that is present must have
the right type.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, StrictStr

from domain.channel.streams import StreamProtocol
from domain.kernel.json_document import Address, Section, WriteOnly, checked, named


class StatusCheckStrategy(IntEnum):
    """The servers of a channel that are queried to determine whether it is on the air."""

    ALL = 0
    SRVA_ARCHIVE = 1
    SRVA_API = 2
    STATUS_PHP = 3
    NONE = 4
    SRVC_TIMESTAMP = 5


class OutputUrl(Section):
    stream_protocol: Annotated[StreamProtocol, named(StreamProtocol)] | None = None
    live_cdn_primary_url: Address | None = None
    live_cdn_secondary_url: Address | None = None
    live_origin_primary_url: Address | None = None
    live_origin_secondary_url: Address | None = None
    vod_cdn_primary_url: Address | None = None
    vod_cdn_secondary_url: Address | None = None
    vod_origin_primary_url: Address | None = None
    vod_origin_secondary_url: Address | None = None
    vod_private_url: Address | None = None


class PublishingPoint(Section):
    resource: StrictStr | None = None
    publishing_point_url: Address | None = None
    srva_api: Address | None = None
    srva_api_key: WriteOnly = None
    status_url: Address | None = None
    dvr_window_length: Annotated[StrictInt, Field(ge=0)] | None = None


class StreamingServerSpecific(Section):
    primary_publishing_point: PublishingPoint | None = None
    secondary_publishing_point: PublishingPoint | None = None
    api_url: Address | None = None
    application: StrictStr | None = None
    stream_name: StrictStr | None = None
    user: StrictStr | None = None
    password: WriteOnly = None


class StreamingServer(Section):
    type: StrictStr | None = None
    streaming_server_specific: StreamingServerSpecific | None = None


class Encoder(Section):
    name: StrictStr | None = None
    type: StrictStr | None = None
    resource: StrictStr | None = None
    supports_composition: StrictBool | None = None
    encoder_specific: dict[str, object] | None = Field(None, repr=False)
    settings: dict[str, object] | None = Field(None, repr=False)
    streaming_server: StreamingServer | None = None
    output_urls: tuple[OutputUrl, ...] | None = None


class PlayoutProfile(Section):
    id: StrictStr | None = None
    name: StrictStr | None = None
    output_urls: tuple[OutputUrl, ...] | None = None


class RampServer(Section):
    server_address: Address | None = None
    api_key: WriteOnly = None
    location: StrictStr | None = None
    proxy_pass: Address | None = None
    player_address: Address | None = None
    proxy_pass_empty: StrictBool | None = None


class ChannelDocument(Section):
    status_check_strategy: Annotated[StatusCheckStrategy, named(StatusCheckStrategy)] | None = None
    encoders: tuple[Encoder, ...] | None = None
    playout_profiles: tuple[PlayoutProfile, ...] | None = None
    ramp_servers: tuple[RampServer, ...] | None = None


def resource_names(text: str) -> tuple[str, ...]:
    """Return the names of the resources of a channel without duplicates: for each encoder its own, then those of its publishing
    points."""
    encoders = checked(ChannelDocument, text).encoders or ()
    return tuple(dict.fromkeys(name for encoder in encoders for name in _resources(encoder) if name))


def composes(text: str) -> bool:
    """Return True if an encoder of the channel can play a playlist out."""
    return any(encoder.supports_composition for encoder in checked(ChannelDocument, text).encoders or ())


def _resources(encoder: Encoder) -> Iterator[str | None]:
    yield encoder.resource
    server = encoder.streaming_server
    specific = server.streaming_server_specific if server else None
    if specific is not None:
        for point in (specific.primary_publishing_point, specific.secondary_publishing_point):
            yield point.resource if point else None
