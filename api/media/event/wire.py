"""Media Events as callers spell them: document 2, "POST /event/" and the query parameters of "GET /event/"."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.kernel.pages import FreshQuery, PageQuery
from api.kernel.parsing import parse_json
from api.kernel.wire import Between, Flag, Instant, Integer, Label, Listed, Name, NamedInt, Text, Wire
from domain.kernel.errors import FieldError, Malformed
from domain.media_event.values import EventState, Mp4State, ProvisionState
from projections.media_event.filters import ORDER_COLUMNS

State = Annotated[EventState, NamedInt(EventState)]
Mp4 = Annotated[Mp4State, NamedInt(Mp4State)]
Provision = Annotated[ProvisionState, NamedInt(ProvisionState)]
_MOST = 1000
"""Tags of one Event, and steps of one patch: each is work within one decision, which holds up others."""
_SOURCE = "^([0-9]{1,4}[0-4]|[0-4]|(CDN|ORIGIN)_(PRIMARY|SECONDARY)_INDEX_[0-9]{1,4}|PRIVATE_INDEX_[0-9]{1,4})$"
Natural = Annotated[Integer, Between(0)]


def _json_list(value: Any) -> Any:
    """In a form, a list is JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value, where="")
    except Malformed as wrong:
        raise Malformed(*(FieldError(f"tags{error.field}", error.message) for error in wrong.errors)) from None


def _holds_json(text: str) -> str:
    """Strict JSON of any shape, or nothing. The empty text clears, as for every text."""
    try:
        if text:
            json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise PydanticCustomError("json", "must hold JSON") from None
    return text


def _no_constant(name: str) -> None:
    raise ValueError(name)


JsonText = Annotated[Text, AfterValidator(_holds_json)]
"""A text that holds JSON and is kept as it was sent."""


class TagModel(Wire):
    """The name decides; `id` is taken for a new tag only."""

    id: UUID | None = None
    name: Name


TagList = Annotated[list[TagModel], Field(max_length=_MOST)]


class EventParticulars(Wire):
    """What POST writes and PATCH replaces. null clears; for a flag it means false."""

    title: Label | None = None
    ref_id: Label | None = None
    external_id: Label | None = None
    description: Text | None = None
    thumbnail: Text | None = None
    additional_streaming_options: Text | None = None
    task_engine_json: JsonText | None = None
    drm_json: JsonText | None = None
    room_id: UUID | None = None
    event_type_id: UUID | None = None
    category_id: UUID | None = None
    channel_id: UUID | None = None
    flow_id: UUID | None = None
    remixflow_id: UUID | None = None
    infrastructure_profile_id: UUID | None = None
    archiverflow_id: UUID | None = None
    scheduled_start: Instant | None = None
    scheduled_end: Instant | None = None
    scheduled_channel_start: Instant | None = None
    scheduled_channel_end: Instant | None = None
    published_start: Instant | None = None
    published_end: Instant | None = None
    instant_vod_start: Instant | None = None
    instant_vod_end: Instant | None = None
    scheduled_provision_at: Instant | None = None
    scheduled_terminate_at: Instant | None = None
    archiver_start: Instant | None = None
    archiver_end: Instant | None = None
    auto_start: Flag | None = None
    auto_end: Flag | None = None
    auto_provision_infrastructure: Flag | None = None
    auto_terminate_infrastructure: Flag | None = None
    auto_publish: Flag | None = None
    auto_start_publications: Flag | None = None
    auto_expire_publishing_points: Flag | None = None
    vod_enable_drm: Flag | None = None
    refresh_index: Flag | None = None
    tags: Annotated[TagList | None, BeforeValidator(_json_list)] = None
    event_state: State | None = None
    dvr_length: Natural | None = None
    max_bitrate: Natural | None = None
    min_bitrate: Natural | None = None


class EventBody(EventParticulars):
    """POST /event/: `Id` is required to update and optional to add."""

    id: UUID | None = None


class PatchStep(Wire):
    """One operation of a JSON Patch (RFC 6902). `value` absent and `value` null are two things."""

    op: Literal["replace", "add", "remove", "test"]
    path: Annotated[str, Field(json_schema_extra={"pattern": "^/[^/]+$", "examples": ["/Title"]})]
    value: Any = None


Patch = Annotated[list[PatchStep], Field(max_length=_MOST)]


class DvrWindowBody(Wire):
    dvr_window_length: Natural


class FlowTaskBody(Wire):
    id: UUID | None = None
    task_engine_json: Annotated[JsonText, Field(min_length=1)]
    event_state: State | None = None
    mp4_state: Mp4 | None = None
    refresh_index: Flag | None = None


class StateBody(Wire):
    state: State


class ProtectionBody(Wire):
    protection: State


def _order_column(value: Any) -> Any:
    known = {name.lower(): name for name in ORDER_COLUMNS}
    found = known.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise PydanticCustomError("order_column", f"must be one of {', '.join(ORDER_COLUMNS)}")
    return found


_ORDER_SCHEMA = {"type": "string", "enum": list(ORDER_COLUMNS)}


class EventListQuery(PageQuery):
    """GET /event/ and GET /event/deleted/."""

    scheduled_from: Annotated[Instant | None, Field(alias="from")] = None
    scheduled_to: Annotated[Instant | None, Field(alias="to")] = None
    from_modified: Instant | None = None
    to_modified: Instant | None = None
    event_state: Annotated[tuple[State, ...], Listed] = ()
    provision_state: Annotated[tuple[Provision, ...], Listed] = ()
    tags: Annotated[tuple[str, ...], Listed] = ()
    room: str | None = None
    event_type: str | None = None
    channel: str | None = None
    category: tuple[str, ...] = ()
    search: str | None = None
    no_scheduled_end: Flag = False
    contains_vuflow: Flag = False
    skip_events: Annotated[tuple[UUID, ...], Listed] = ()
    order_column: Annotated[str, BeforeValidator(_order_column), WithJsonSchema(_ORDER_SCHEMA)] | None = None


StreamTime = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "pattern": r"^\d\d:[0-5]\d:[0-5]\d(\.\d{1,3})?$"},
            ]
        }
    ),
]
"""Read by the domain, which keeps it as it was sent."""
SourceName = Annotated[str, Field(json_schema_extra={"pattern": _SOURCE, "examples": ["CDN_PRIMARY_INDEX_0"]})]


class PlaybackQuery(FreshQuery):
    """What shapes the Video object of a single read."""

    in_point: Annotated[StreamTime | None, Field(alias="in")] = None
    out_point: Annotated[StreamTime | None, Field(alias="out")] = None
    audio_only: Flag = False
    auto_start: Flag = False
    process_video: Flag = False
    view_unpublished: Flag = False
    stream_source: SourceName | None = None
    live_playout_profile_id: UUID | None = None


class PlaybackReferenceQuery(PlaybackQuery):
    """The same, for a look-up by reference or external id."""

    id: Annotated[str, Field(min_length=1)]
