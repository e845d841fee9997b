"""Request bodies and query parameters of the Event routes. See docs/reference/api/events.md."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.kernel.pages import PageQuery
from api.kernel.parsing import parse_json
from api.kernel.wire import Between, Flag, Instant, Integer, Label, Listed, Name, NamedInt, Text, Wire
from domain.event.values import EventState, Mp4State
from domain.kernel.errors import FieldError, Malformed
from domain.provision.values import ProvisionState
from projections.event.filters import ORDER_COLUMNS

State = Annotated[EventState, NamedInt(EventState)]
Mp4 = Annotated[Mp4State, NamedInt(Mp4State)]
Provision = Annotated[ProvisionState, NamedInt(ProvisionState)]
_MOST = 1000
"""Maximum number of tags of an Event and of steps of a patch. One decision handles all of them while other writes wait."""
Natural = Annotated[Integer, Between(0)]


def _json_list(value: Any) -> Any:
    """Parse a list that a form sends as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value, where="")
    except Malformed as wrong:
        raise Malformed(*(FieldError(f"tags{error.field}", error.message) for error in wrong.errors)) from None


def _holds_json(text: str) -> str:
    """Require strict JSON of any shape. The empty text is allowed: it clears the field."""
    try:
        if text:
            json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise PydanticCustomError("json", "must hold JSON") from None
    return text


def _no_constant(name: str) -> None:
    raise ValueError(name)


JsonText = Annotated[Text, AfterValidator(_holds_json)]
"""A text that holds JSON, stored as it was sent."""


class TagModel(Wire):
    """A tag in a request. A tag with this name is used if there is one; `id` is used only for a new tag."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "football"}]})

    id: UUID | None = Field(
        default=None,
        description="The id of the tag. In a list of tags it is used only for a new tag.",
    )
    name: Name = Field(description="The unique name; required, not blank.")


TagList = Annotated[list[TagModel], Field(max_length=_MOST)]


_EVENT_EXAMPLE: dict[str, Any] = {
    "title": "Cup final",
    "refId": "cup-2031",
    "scheduledStart": "2031-01-02T19:00:00.000Z",
    "scheduledEnd": "2031-01-02T21:00:00.000Z",
    "tags": [{"name": "football"}],
}
_PATCH_EXAMPLE = [
    {"op": "test", "path": "/State", "value": "PRE_LIVE"},
    {"op": "replace", "path": "/Title", "value": "Final"},
]


class EventFields(Wire):
    """The fields that POST and PATCH write. null clears a field; for a flag it means false."""

    title: Label | None = Field(default=None, description='The title. null or "" clears it.')
    ref_id: Label | None = Field(default=None, description='An id in another system; not unique. null or "" clears it.')
    external_id: Label | None = Field(default=None, description='An id in another system; not unique. null or "" clears it.')
    description: Text | None = Field(default=None, description='The description. null or "" clears it.')
    thumbnail: Text | None = Field(
        default=None,
        description='A picture: an http or https URL, or the name of a file of the Event. null or "" clears it.',
    )
    additional_streaming_options: Text | None = Field(
        default=None,
        description='Options for the encoders of the channel; unknown options are ignored. null or "" clears them.',
    )
    task_engine_json: JsonText | None = Field(
        default=None,
        description='A task for a job engine, as a text that holds JSON; it is stored and starts nothing. null or "" clears it.',
    )
    drm_json: JsonText | None = Field(
        default=None,
        description=(
            'DRM settings, as a text that holds JSON, with `drm_provider` and `drm_data`; stored as sent. null or "" clears them.'
        ),
    )
    room_id: UUID | None = Field(default=None, description="The room, which must exist. null removes it.")
    event_type_id: UUID | None = Field(default=None, description="The event type, which must exist. null removes it.")
    category_id: UUID | None = Field(default=None, description="The category, which must exist. null removes it.")
    channel_id: UUID | None = Field(
        default=None,
        description="The channel, which must exist. null removes it. Not changed in the states 1, 2, 24 and while PROVISIONING.",
    )
    flow_id: UUID | None = Field(default=None, description="The flow for playback on demand, which must exist. null removes it.")
    remixflow_id: UUID | None = Field(default=None, description="The flow for remixes, which must exist. null removes it.")
    infrastructure_profile_id: UUID | None = Field(
        default=None,
        description="The infrastructure profile, which must exist. null removes it. Not changed in the states 1, 2, 24 and while "
        "PROVISIONING.",
    )
    archiverflow_id: UUID | None = Field(
        default=None,
        description="The flow for recordings of an archiver, which must exist. null removes it.",
    )
    scheduled_start: Instant | None = Field(default=None, description="The scheduled start. null clears it.")
    scheduled_end: Instant | None = Field(default=None, description="The scheduled end. null clears it.")
    scheduled_channel_start: Instant | None = Field(
        default=None,
        description="Start of the reservation of the channel. null clears it.",
    )
    scheduled_channel_end: Instant | None = Field(
        default=None,
        description="End of the reservation of the channel. null clears it.",
    )
    published_start: Instant | None = Field(
        default=None,
        description="Start of publication. null clears it. The state LIVE_PUBLISHED sets it if it is null.",
    )
    published_end: Instant | None = Field(
        default=None,
        description="End of publication. null clears it. The state STOPPED sets it if the Event was public.",
    )
    instant_vod_start: Instant | None = Field(
        default=None,
        description="Start of playback on demand directly after the live stream. null clears it.",
    )
    instant_vod_end: Instant | None = Field(
        default=None,
        description="End of playback on demand directly after the live stream. null clears it.",
    )
    scheduled_provision_at: Instant | None = Field(
        default=None, description="The time when infrastructure is provisioned. null clears it."
    )
    scheduled_terminate_at: Instant | None = Field(
        default=None, description="The time when infrastructure is terminated. null clears it."
    )
    archiver_start: Instant | None = Field(default=None, description="Start of the recording. null clears it.")
    archiver_end: Instant | None = Field(default=None, description="End of the recording. null clears it.")
    auto_start: Flag | None = Field(
        default=None,
        description="True if the Event starts at `scheduledStart`. null means false; default false.",
    )
    auto_end: Flag | None = Field(
        default=None,
        description="True if the Event stops at `scheduledEnd`. null means false; default false.",
    )
    auto_provision_infrastructure: Flag | None = Field(
        default=None,
        description=("True if infrastructure is provisioned at `scheduledProvisionAt`; null means false; default false."),
    )
    auto_terminate_infrastructure: Flag | None = Field(
        default=None,
        description=("True if infrastructure is terminated at `scheduledTerminateAt`; null means false; default false."),
    )
    auto_publish: Flag | None = Field(
        default=None,
        description="True if the Event is public when it starts at `scheduledStart`. null means false; default false.",
    )
    auto_start_publications: Flag | None = Field(
        default=None,
        description=(
            "True if publications start when the Event goes live; stored for readers of the log. null means false; default false."
        ),
    )
    auto_expire_publishing_points: Flag | None = Field(
        default=None,
        description=("True if the encoders restart when all publishing points fail; not shown. null means false; default false."),
    )
    vod_enable_drm: Flag | None = Field(
        default=None,
        description="True if playback on demand uses DRM; shown as `vodDrm`. null means false; default false.",
    )
    vod_drm: Flag | None = Field(
        default=None, description="Another name of `vodEnableDrm`, which responses use; `vodEnableDrm` takes precedence."
    )
    refresh_index: Flag | None = Field(default=None, description="Accepted and ignored: a read always shows the latest state.")
    tags: Annotated[TagList | None, BeforeValidator(_json_list)] = Field(
        default=None,
        description=(
            "The tags of the Event, which replace its present tags. A tag is found by name or added. null or [] removes all. "
            "At most 1000."
        ),
    )
    event_state: State | None = Field(
        default=None,
        description="The new state, by number or name. null or absent: no change; for a new Event 0 PRE_LIVE.",
    )
    dvr_length: Natural | None = Field(default=None, description="Length of the DVR window in seconds. 0 or null: none.")
    max_bitrate: Natural | None = Field(default=None, description="Highest bitrate of the playback URLs. 0 or null: no limit.")
    min_bitrate: Natural | None = Field(default=None, description="Lowest bitrate of the playback URLs. 0 or null: no limit.")


class AddOrUpdateEventRequest(EventFields):
    """POST /event/. `id` is required to update an Event and optional to add one."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EVENT_EXAMPLE]})

    id: UUID | None = Field(
        default=None,
        description="The Event to update. Absent or null: a new Event. Unknown: a new Event with this id.",
    )


class PatchStep(Wire):
    """An operation of a JSON Patch (RFC 6902). An absent `value` is not the same as null."""

    op: Literal["replace", "add", "remove", "test"] = Field(
        description=(
            "`replace` and `add` set the field, `remove` sets it to null, `test` requires that it has the value (otherwise 409)."
        ),
    )
    path: Annotated[str, Field(json_schema_extra={"pattern": "^/[^/]+$", "examples": ["/Title"]})] = Field(
        description="A slash and the name of a writable field, ignoring case, such as `/Title`.",
    )
    value: Any = Field(default=None, description="The value; required except for `remove`.")


Patch = Annotated[list[PatchStep], Field(max_length=_MOST, examples=[_PATCH_EXAMPLE])]


class SetDvrWindowLengthRequest(Wire):
    """POST /event/stream/dvrwindowlength/{id}."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dvrWindowLength": 600}]})

    dvr_window_length: Natural = Field(description="Length of the DVR window in seconds; 0 for none.")


class AddFlowTaskRequest(Wire):
    """POST /event/flow/add/."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"taskEngineJson": '{"workflow": "http_fetch_verify"}', "eventState": "PRE_VOD"}]}
    )

    id: UUID | None = Field(default=None, description="The Event; unknown is 404. Absent or null: a new Event is added.")
    task_engine_json: Annotated[JsonText, Field(min_length=1)] = Field(description="The task, as a text that holds JSON; required.")
    event_state: State | None = Field(default=None, description="The new state, by number or name. null or absent: no change.")
    mp4_state: Mp4 | None = Field(
        default=None,
        description="The state of the MP4 file, by number or name. null or absent: no change.",
    )
    refresh_index: Flag | None = Field(default=None, description="Accepted and ignored: a read always shows the latest state.")


class ChangeEventStateRequest(Wire):
    """PUT /event/state/{id}."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"state": "LIVE_PUBLISHED"}],
            "anyOf": [{"required": ["state"]}, {"required": ["eventState"]}],
        }
    )

    state: State | None = Field(
        default=None, description="The state to go to, by number or name; required, here or as `eventState`."
    )
    event_state: State | None = Field(default=None, description="Another name of `state`, which other writes use.")

    def requested_state(self) -> EventState:
        """Return the state, which may be sent under one name or under both. Raises `Malformed`."""
        named = {state for state in (self.state, self.event_state) if state is not None}
        if len(named) != 1:
            raise Malformed.at("state", "differs from eventState" if named else "is required")
        return named.pop()


class ChangeEventProtectionRequest(Wire):
    """PUT /event/flow/protection/{contentId}."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"protection": "VOD_PUBLIC"}]})

    protection: State = Field(description="10 VOD_PRIVATE or 11 VOD_PUBLIC, by number or name; required.")


def _order_column(value: Any) -> Any:
    column = _COLUMNS_BY_LOWER_NAME.get(value.lower()) if isinstance(value, str) else None
    if column is None:
        raise PydanticCustomError("order_column", f"must be one of {', '.join(ORDER_COLUMNS)}")
    return column


_COLUMNS_BY_LOWER_NAME = {name.lower(): name for name in ORDER_COLUMNS}
_ORDER_SCHEMA = {"type": "string", "enum": list(ORDER_COLUMNS)}


class EventListQuery(PageQuery):
    """GET /event/ and GET /event/deleted/. The filters have the names of `EventFilter`."""

    scheduled_from: Instant | None = Field(
        default=None,
        alias="from",
        description="Events whose scheduledStart is not before this; Events without one are omitted.",
    )
    scheduled_to: Instant | None = Field(
        default=None,
        alias="to",
        description="Events whose scheduledStart is not after this; Events without one are omitted.",
    )
    modified_from: Instant | None = Field(
        default=None, alias="fromModified", description="Events whose dateModified is not before this."
    )
    modified_to: Instant | None = Field(
        default=None, alias="toModified", description="Events whose dateModified is not after this."
    )
    states: Annotated[tuple[State, ...], Listed] = Field(
        default=(),
        alias="eventState",
        description="Events in any of these states, by number or name, comma separated.",
    )
    provision_states: Annotated[tuple[Provision, ...], Listed] = Field(
        default=(),
        alias="provisionState",
        description="Events in any of these provisioning states, by number or name, comma separated.",
    )
    tags: Annotated[tuple[str, ...], Listed] = Field(
        default=(),
        description="Events with any of these tags, by name, comma separated.",
    )
    room: str | None = Field(default=None, description="Events of a room with this name.")
    event_type: str | None = Field(default=None, description="Events of an event type with this name.")
    channel: str | None = Field(default=None, description="Events of a channel with this name.")
    categories: tuple[str, ...] = Field(
        default=(),
        alias="category",
        description="Events of a category with this name or label; may be repeated; one of them must match.",
    )
    search: str | None = Field(
        default=None,
        description="A part of title, refId, externalId, contentId or description, ignoring case.",
    )
    no_scheduled_end: Flag = Field(default=False, description="true: only Events without a scheduledEnd. Default false: all.")
    contains_flow: Flag = Field(
        default=False, alias="containsVuflow", description="true: only Events with a flow. Default false: all."
    )
    ids: Annotated[tuple[UUID, ...], Listed] = Field(default=(), description="Events with any of these ids, comma separated.")
    skip: Annotated[tuple[UUID, ...], Listed] = Field(
        default=(), alias="skipEvents", description="Ids of Events to omit, comma-separated."
    )
    order_column: Annotated[str, BeforeValidator(_order_column), WithJsonSchema(_ORDER_SCHEMA)] | None = Field(
        default=None,
        description="The field to sort by. Default: scheduledStart.",
    )
