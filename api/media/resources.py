"""The list of every simple resource: what the audit shows a record as, and which routes there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from api.kernel.routes import Routes
from api.media import (
    archiver_stream,
    channel,
    event_type,
    flow,
    infrastructure_profile,
    playlist,
    provision_comparison,
    room,
    tag,
)
from api.media.category import routes as category
from api.media.chapter_point import routes as chapter_point
from api.media.resource import Resource, Shape
from api.media.webhook import callbacks, deliveries
from api.media.webhook import routes as webhook
from api.media.webhook.writes import WEBHOOKS

RESOURCES: Sequence[Resource] = (
    room.ROOMS,
    tag.TAGS,
    category.PROPERTIES.resource,
    chapter_point.PROPERTIES.resource,
    event_type.EVENT_TYPES,
    playlist.PLAYLISTS,
    playlist.ITEMS,
    archiver_stream.STREAMS,
    channel.CHANNELS,
    flow.FLOWS,
    infrastructure_profile.PROFILES,
    WEBHOOKS,
)
SHAPES: Mapping[str, Shape] = {one.kind.KIND: one.shape for one in RESOURCES}
ROUTES: Sequence[Routes] = (
    room.routes,
    tag.routes,
    tag.documents,
    category.routes,
    category.custom_properties,
    chapter_point.routes,
    chapter_point.custom_properties,
    event_type.routes,
    playlist.routes,
    archiver_stream.routes,
    channel.routes,
    flow.routes,
    infrastructure_profile.routes,
    provision_comparison.routes,
    webhook.routes,
    webhook.as_spelled,
    callbacks.routes,
    deliveries.routes,
)
