"""Events in responses, and the records they link to. See docs/reference/api/events.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import UUID

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from api.http.response import encode
from api.kernel.wire import Instant, Wire
from api.media.category import Category, CategoryProperty
from api.media.event.requests import Mp4, State
from api.media.event.video import Video
from api.media.provision.routes import ProvisionSummary
from domain.event.playback import flow_configuration, thumbnail_url
from domain.event.ports import EventRow
from domain.record.configured_record import ConfiguredDetails
from domain.record.kinds.event_type import EventTypeDetails
from domain.record.ports import HasName, RecordRow
from projections.kernel.database.page import Page


@dataclass(frozen=True, slots=True)
class LinkedRecords:
    """The records that a set of Events links to. Keys are ids as numbers, because the hash of a UUID is computed in Python."""

    records: Mapping[tuple[str, int], RecordRow[HasName]] = field(default_factory=dict)
    """The records, by kind and id."""
    categories: Mapping[int, Category] = field(default_factory=dict)
    """The categories among the records, built once for all Events, by id."""
    storage: Mapping[UUID, str] = field(default_factory=dict)
    """The public storage URLs of the flows that hold thumbnails, by the flow's id."""

    def find(self, kind: str, key: UUID | None) -> RecordRow[HasName] | None:
        return self.records.get((kind, key.int)) if key is not None else None

    def name(self, kind: str, key: UUID | None) -> str | None:
        row = self.records.get((kind, key.int)) if key is not None else None
        return row.details.name if row is not None else None

    def colour(self, event_type: UUID | None) -> str | None:
        row = self.find("event_type", event_type)
        return row.details.colour if row is not None and isinstance(row.details, EventTypeDetails) else None


NO_LINKED_RECORDS = LinkedRecords()


def storage_urls(flows: Iterable[RecordRow[ConfiguredDetails]]) -> dict[UUID, str]:
    """Return the public storage URL of each flow."""
    return {UUID(flow.id): flow_configuration(flow.details.configuration_json).storage_url_public for flow in flows}


class Event(Wire):
    """An Event. A text without a value is "", the name of an absent link is null."""

    id: UUID = Field(description="The id of the Event; never changes.")
    title: str = Field(description='The title; "" when not set.')
    ref_id: str = Field(description='The reference id; "" when not set. Not unique.')
    external_id: str = Field(description='The external id; "" when not set. Not unique.')
    content_id: str = Field(description="The id of the Event, which names its media files. Never changes.")
    description: str | None = Field(description="The description; null when not set.")
    channel_id: UUID | None = Field(description="The channel; null without one.")
    channel: str | None = Field(description="The name of the linked channel; null without one.")
    flow_id: UUID | None = Field(description="The flow for playback on demand; null without one.")
    flow: str | None = Field(description="The name of the linked flow; null without one.")
    remixflow_id: UUID | None = Field(description="The flow for remixes; null without one.")
    remixflow: str | None = Field(description="The name of the linked remix flow; null without one.")
    archiverflow_id: UUID | None = Field(description="The flow for recordings of an archiver; null without one.")
    archiverflow: str | None = Field(description="The name of the linked archiver flow; null without one.")
    infrastructure_profile_id: UUID | None = Field(description="The infrastructure profile; null without one.")
    infrastructure_profile: str | None = Field(description="The name of the linked infrastructure profile; null without one.")
    event_type_id: UUID | None = Field(description="The event type; null without one.")
    event_type: str | None = Field(description="The name of the linked event type; null without one.")
    room_id: UUID | None = Field(description="The room; null without one.")
    room: str | None = Field(description="The name of the linked room; null without one.")
    channel_profile_id: UUID | None = Field(description="Always null.")
    custom_property_configuration_id: UUID | None = Field(description="Always null.")
    event_type_colour: str | None = Field(
        description="The colour of the event type, #rgb or #rrggbb; null without a type or colour.",
    )
    state: State = Field(description="The state, as a number.")
    state_string: str = Field(description="The state, by name.")
    mp4_state: Mp4 = Field(alias="mp4State", description="The state of the MP4 file, as a number.")
    mp4_state_string: str = Field(alias="mp4StateString", description="The state of the MP4 file, by name.")
    auto_start: bool = Field(description="True if the Event starts at `scheduledStart`.")
    auto_end: bool = Field(description="True if the Event stops at `scheduledEnd`.")
    auto_publish: bool = Field(description="True if the Event is public from its start.")
    auto_start_publications: bool = Field(description="True if its publications start with the Event.")
    auto_provision_infrastructure: bool = Field(description="True if infrastructure is provisioned at `scheduledProvisionAt`.")
    auto_terminate_infrastructure: bool = Field(description="True if infrastructure is terminated at `scheduledTerminateAt`.")
    embeded_vod_timestamps: bool = Field(description="Always false.")
    capturing_live2_vod: bool = Field(
        alias="capturingLive2Vod", description="True if the live stream is being captured as video on demand."
    )
    external_update_allowed: bool = Field(description="Always false.")
    vod_drm: bool = Field(description="True if playback on demand uses DRM.")
    remix_drm: bool = Field(description="Always false.")
    display_start: Instant | None = Field(
        description=(
            "The start to show to viewers: `publishedStart`, else `scheduledStart`, else `actualLiveStart`; null when none is set."
        ),
    )
    display_end: Instant | None = Field(
        description="The end to show to viewers: `publishedEnd`, else `scheduledEnd`, else `actualLiveEnd`; null when none is set.",
    )
    scheduled_start: Instant | None = Field(description="The scheduled start; null when not set.")
    scheduled_end: Instant | None = Field(description="The scheduled end; null when not set.")
    scheduled_channel_start: Instant | None = Field(description="Start of the reservation of the channel; null when not set.")
    scheduled_channel_end: Instant | None = Field(description="End of the reservation of the channel; null when not set.")
    actual_live_start: Instant | None = Field(description="Time of the first live state; null before.")
    actual_live_end: Instant | None = Field(description="Time of the last stop; null before.")
    published_start: Instant | None = Field(
        description="Start of publication; null when not set. The state LIVE_PUBLISHED sets it if it is null.",
    )
    published_end: Instant | None = Field(
        description="End of publication; null when not set. The state STOPPED sets it if the Event was public.",
    )
    instant_vod_start: Instant | None = Field(
        description="Start of playback on demand directly after the live stream; null when not set.",
    )
    instant_vod_end: Instant | None = Field(
        description="End of playback on demand directly after the live stream; null when not set.",
    )
    scheduled_provision_at: Instant | None = Field(description="The time when infrastructure is provisioned; null when not set.")
    scheduled_terminate_at: Instant | None = Field(description="The time when infrastructure is terminated; null when not set.")
    capture_vod_start: Instant | None = Field(description="Start of the last capture as video on demand; null before the first.")
    capture_vod_end: Instant | None = Field(description="End of the last capture as video on demand; null before the first.")
    date_created: Instant = Field(description="The time when the Event was added.")
    date_modified: Instant = Field(description="The time of the last change that a GET shows.")
    date_deleted: Instant | None = Field(description="The time when the Event was deleted; null when not deleted.")
    archiver_start: Instant | None = Field(description="Start of the recording; null when not set.")
    archiver_end: Instant | None = Field(description="End of the recording; null when not set.")
    drm_json: str = Field(description='DRM settings, as sent; "" when not set.')
    drm_data: Any = Field(description="The member `drm_data` of `drmJson`, parsed; null without one.")
    remix_drm_json: str = Field(description='Always "".')
    remix_drm_data: Any = Field(description="Always null.")
    additional_streaming_options: str = Field(description='Options for a streaming server, as sent; "" when not set.')
    dvr_length: int = Field(description="Length of the DVR window in seconds; 0 when not set.")
    dvr_length_url_param: int = Field(description="Equal to `dvrLength`.")
    max_bitrate_url_param: int = Field(description="The highest bitrate of the playback URLs; 0 when not set.")
    min_bitrate_url_param: int = Field(description="The lowest bitrate of the playback URLs; 0 when not set.")
    task_engine_json: str = Field(description='The flow task, as sent; "" when not set.')
    thumbnail: str = Field(description='The picture as it was sent; "" when not set.')
    thumbnail_url: str = Field(
        description=(
            "The URL of the picture: an http or https `thumbnail` unchanged, else below the public storage URL of the flow; "
            '"" without one.'
        ),
    )
    document_url: str = Field(description="URL of the documents of the Event.")
    tag_url: str = Field(description="URL of the tags of the Event.")
    custom_properties: list[CategoryProperty] = Field(description="The custom properties of its categories.")
    categories: list[Category] = Field(
        description="The category of the Event, with its custom properties; empty without one.",
    )
    category: str | None = Field(description="The label of the first of `categories`; null without one.")
    category_id: UUID | None = Field(description="The first of `categories`; null without one.")
    provision_info: ProvisionSummary | None = Field(
        description="The infrastructure of the Event, without `resourcesJson`; null if it was never provisioned."
    )
    archiver_capture_id: str | None = Field(description="Always null.")
    archiver_profile_id: str | None = Field(description="Always null.")
    video: Video | None = Field(description="The addresses for playback; null unless `processVideo` is true.")

    @classmethod
    def of(cls, row: EventRow, linked: LinkedRecords, *, base_url: str, video: Video | None = None) -> Self:
        details, key = row.details, str(row.id)
        categories = [shown for key in details.category_ids if (shown := linked.categories.get(key.int)) is not None]
        return cls.from_values(
            {
                "id": row.id,
                "title": details.title or "",
                "ref_id": details.ref_id or "",
                "external_id": details.external_id or "",
                "content_id": key,
                "description": details.description,
                "channel_id": details.channel_id,
                "channel": linked.name("channel", details.channel_id),
                "flow_id": details.flow_id,
                "flow": linked.name("flow", details.flow_id),
                "remixflow_id": details.remixflow_id,
                "remixflow": linked.name("flow", details.remixflow_id),
                "archiverflow_id": details.archiverflow_id,
                "archiverflow": linked.name("flow", details.archiverflow_id),
                "infrastructure_profile_id": details.infrastructure_profile_id,
                "infrastructure_profile": linked.name("infrastructure_profile", details.infrastructure_profile_id),
                "event_type_id": details.event_type_id,
                "event_type": linked.name("event_type", details.event_type_id),
                "room_id": details.room_id,
                "room": linked.name("room", details.room_id),
                "channel_profile_id": None,
                "custom_property_configuration_id": None,
                "event_type_colour": linked.colour(details.event_type_id),
                "state": details.state,
                "state_string": details.state.name,
                "mp4_state": details.mp4_state,
                "mp4_state_string": details.mp4_state.name,
                "auto_start": details.auto_start,
                "auto_end": details.auto_end,
                "auto_publish": details.auto_publish,
                "auto_start_publications": details.auto_start_publications,
                "auto_provision_infrastructure": details.auto_provision_infrastructure,
                "auto_terminate_infrastructure": details.auto_terminate_infrastructure,
                "embeded_vod_timestamps": False,
                "capturing_live2_vod": details.capturing_live2_vod,
                "external_update_allowed": False,
                "vod_drm": details.vod_drm,
                "remix_drm": False,
                "display_start": details.display_start,
                "display_end": details.display_end,
                "scheduled_start": details.scheduled_start,
                "scheduled_end": details.scheduled_end,
                "scheduled_channel_start": details.scheduled_channel_start,
                "scheduled_channel_end": details.scheduled_channel_end,
                "actual_live_start": details.actual_live_start,
                "actual_live_end": details.actual_live_end,
                "published_start": details.published_start,
                "published_end": details.published_end,
                "instant_vod_start": details.instant_vod_start,
                "instant_vod_end": details.instant_vod_end,
                "scheduled_provision_at": details.scheduled_provision_at,
                "scheduled_terminate_at": details.scheduled_terminate_at,
                "capture_vod_start": details.capture_vod_start,
                "capture_vod_end": details.capture_vod_end,
                "date_created": row.date_created,
                "date_modified": row.date_modified,
                "date_deleted": details.date_deleted,
                "archiver_start": details.archiver_start,
                "archiver_end": details.archiver_end,
                "drm_json": details.drm_json or "",
                "drm_data": _drm_data(details.drm_json),
                "remix_drm_json": "",
                "remix_drm_data": None,
                "additional_streaming_options": details.additional_streaming_options or "",
                "dvr_length": details.dvr_length or 0,
                "dvr_length_url_param": details.dvr_length or 0,
                "max_bitrate_url_param": details.max_bitrate or 0,
                "min_bitrate_url_param": details.min_bitrate or 0,
                "task_engine_json": details.task_engine_json or "",
                "thumbnail": details.thumbnail or "",
                "thumbnail_url": thumbnail_url(details, storage=linked.storage, content_id=key),
                "document_url": f"{base_url}/api/document/event/{key}",
                "tag_url": f"{base_url}/api/tag/event/{key}",
                "custom_properties": [owned for category in categories for owned in category.custom_properties],
                "categories": categories,
                "category": categories[0].label if categories else None,
                "category_id": details.category_ids[0] if details.category_ids else None,
                "provision_info": None if details.provision is None else ProvisionSummary.of(row.id, details.provision),
                "archiver_capture_id": None,
                "archiver_profile_id": None,
                "video": video,
            }
        )


class EventCollection(Wire):
    """A page of Events."""

    page_size: int = Field(description="The size of the page: the requested size, at most 1000.")
    total_count: int = Field(description="Number of Events that match the filters.")
    results: list[Event] = Field(description="The Events of this page, with all fields; `video` is null.")

    @classmethod
    def encoded(cls, page: Page[EventRow], parts: Sequence[bytes]) -> bytes:
        """Return the page as JSON, built from parts that are already JSON."""
        empty = encode(cls.model_construct(page_size=page.size, total_count=page.total, results=[]))
        return empty.removesuffix(b"]}") + b",".join(parts) + b"]}"


_EVENTS: Final = TypeAdapter(list[Event])


def encoded(rows: Sequence[EventRow], linked: LinkedRecords, *, base_url: str) -> bytes:
    """Return Events as JSON, separated by commas: a part of the array of a page."""
    events = [Event.of(row, linked, base_url=base_url) for row in rows]
    return _EVENTS.dump_json(events, by_alias=True, warnings=False)[1:-1]


class ExternalIdCheck(Wire):
    """The result of a check whether an external id is free."""

    is_unique: bool = Field(alias="IsUnique", description="True if no Event has this external id; deleted Events do not count.")
    value: str = Field(alias="Value", description="The external id of the request.")
    value_type: str = Field(alias="ValueType", description="Always `ExternalId`.")


def _drm_data(drm_json: str | None) -> Any:
    """Return the member `drm_data` of the parsed `drmJson`; None without one."""
    if drm_json is None:
        return None
    try:
        document = from_json(drm_json, allow_inf_nan=False)
    except ValueError:
        return None
    return document.get("drm_data") if isinstance(document, dict) else None
