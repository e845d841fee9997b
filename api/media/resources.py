"""All simple resources: their representations in the audit, and their routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter

from api.audit.past_states import Moment, Renderer
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
from api.media.chapter_point import chapter_point_with_children
from api.media.provision import comparison as provision_comparison
from api.media.resource import Resource
from domain.record.kinds.category import Category
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import CategoryProperty
from domain.record.ports import RecordRow
from projections.record.history import RecordHistory

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


def past_states(history: RecordHistory) -> Mapping[str, Renderer]:
    """Return the renderers of records, with their children at that moment."""

    async def with_properties(root: Category, moment: Moment) -> Any:
        owned = await history.at(moment.position).of_owners(CategoryProperty, [root.key])
        return category.Category.of(RecordRow.of(root), owned.get(root.key, ()))

    async def with_children(root: ChapterPoint, moment: Moment) -> Any:
        return await chapter_point_with_children(history.at(moment.position), RecordRow.of(root))

    resources = {resource.kind.KIND: resource.past_state for resource in RESOURCES}
    return {**resources, Category.KIND: with_properties, ChapterPoint.KIND: with_children}
