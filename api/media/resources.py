"""All simple resources: their representations in the audit, and their routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter

from api.media import (
    archiver_stream,
    category,
    channel,
    chapter_point,
    event_type,
    events_of_records,
    flow,
    infrastructure_profile,
    playlist,
    room,
    tag,
)
from api.media.provision import comparison as provision_comparison
from api.media.resource import Resource
from domain.record.ports import RecordRow

RESOURCES: Sequence[Resource[Any]] = (
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
)
SHAPES: Mapping[str, Callable[[RecordRow[Any]], Any]] = {resource.kind.KIND: resource.shape for resource in RESOURCES}
ROUTES: Sequence[APIRouter] = (
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
    *events_of_records.ROUTES,
)
