"""Events in responses, and the records they link to. See docs/reference/api/events.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from api.http.response import encode
from api.kernel.wire import Instant, Wire, wire_names
from api.media.category import Category, CategoryProperty
from api.media.event.requests import Mp4, State
from api.media.event.video import Video
from api.media.provision.routes import ProvisionSummary
from domain.event.links import LINKS
from domain.event.playback import flow_configuration
from domain.event.playback.video_object import url_below
from domain.kernel.ports import Link
from domain.provision.values import ProvisionSummary as StoredProvision
from domain.record.configured_record import ConfiguredDetails
from domain.record.kinds.event_type import EventTypeDetails
from domain.record.ports import HasName, RecordRow
from projections.event.shown import FIELDS, ShownEvent
from projections.kernel.database.page import Page


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


class EventCollection(Wire):
    """A page of Events."""

    page_size: int = Field(description="The size of the page: the requested size, at most 1000.")
    total_count: int = Field(description="Number of Events that match the filters.")
    results: list[Event] = Field(description="The Events of this page, with all fields; `video` is null.")

    @classmethod
    def encoded(cls, page: Page[ShownEvent], events: Sequence[bytes]) -> bytes:
        """Return the page as JSON, with Events that are already JSON."""
        empty = encode(cls.model_construct(page_size=page.size, total_count=page.total, results=[]))
        return empty.removesuffix(b"]}") + b",".join(events) + b"]}"


_CONSTANT: Final = {
    "channel_profile_id": "null",
    "custom_property_configuration_id": "null",
    "embeded_vod_timestamps": "false",
    "external_update_allowed": "false",
    "remix_drm": "false",
    "remix_drm_json": '""',
    "remix_drm_data": "null",
    "archiver_capture_id": "null",
    "archiver_profile_id": "null",
}
"""The values of the fields that are equal in all Events, as JSON."""


_NAMES: Final = {
    "content_id": "id",
    "dvr_length_url_param": "dvr_length",
    "max_bitrate_url_param": "max_bitrate",
    "min_bitrate_url_param": "min_bitrate",
    "provision_info": "provision",
}
"""The names of the values of fields that have another name."""
_PLACE: Final = {name: place for place, name in enumerate(FIELDS)}


def _template() -> tuple[list[bytes], Callable[[Sequence[bytes]], tuple[bytes, ...]]]:
    """Return the texts of an Event between its values, with an empty place after each, and a function that returns the values of
    these places."""
    text, texts, places = "{", list[bytes](), list[int]()
    for name in Event.model_fields:
        text += f'"{wire_names(Event, name)[0]}":'
        if name in _CONSTANT:
            text += _CONSTANT[name]
        else:
            places.append(_PLACE[_NAMES.get(name, name)])
            texts += [text.encode(), b""]
            text = ""
        text += ","
    return [*texts, text.removesuffix(",").encode() + b"}"], itemgetter(*places)


_TEXTS, _in_order = _template()
_LINKED: Final = tuple((_PLACE[name], _PLACE[name[:-3]], kind) for name, kind in LINKS.items() if name.endswith("_id"))
"""The place of the id, the place of the name, and the kind of each field that links to one record."""
_TYPE_ID, _TYPE_COLOUR = _PLACE["event_type_id"], _PLACE["event_type_colour"]
_LINKS: Final = _PLACE["links"]
_CATEGORY_IDS: Final = _PLACE["category_ids"]
_CATEGORIES: Final = slice(_PLACE["custom_properties"], _PLACE["category"] + 1)
_DOCUMENT_URL, _TAG_URL = _PLACE["document_url"], _PLACE["tag_url"]
_THUMBNAIL_FLOW, _THUMBNAIL_PATH, _THUMBNAIL_URL = _PLACE["thumbnail_flow"], _PLACE["thumbnail_path"], _PLACE["thumbnail_url"]
_PROVISION, _VIDEO = _PLACE["provision"], _PLACE["video"]
_NULL: Final = b"null"
_PROPERTIES: Final = TypeAdapter(list[CategoryProperty])
_OWNERS: Final = TypeAdapter(list[Category])


def links_of(values: Sequence[bytes]) -> list[Link]:
    """Return the links of an Event to records that its response shows."""
    if not values[_LINKS]:
        return []
    return [(kind, key) for kind, _, key in (link.partition(":") for link in values[_LINKS].decode().split())]


def thumbnail_flow(values: Sequence[bytes]) -> str:
    """Return the id of the flow whose storage has the thumbnail of an Event; "" without one."""
    return values[_THUMBNAIL_FLOW].decode()


class LinkedValues:
    """The values of linked records that a set of Events shows, as JSON by the JSON of their ids."""

    def __init__(
        self,
        records: Mapping[Link, RecordRow[HasName]],
        *,
        categories: Mapping[str, Category] = MappingProxyType({}),
        storage: Mapping[UUID, str] = MappingProxyType({}),
    ) -> None:
        self.names = {(kind, f'"{key}"'.encode()): to_json(row.details.name) for (kind, key), row in records.items()}
        self.colours = {
            f'"{key}"'.encode(): to_json(row.details.colour)
            for (_, key), row in records.items()
            if isinstance(row.details, EventTypeDetails)
        }
        self.storage = {str(flow).encode(): url for flow, url in storage.items()}
        self._categories = categories
        self._of_categories: dict[bytes, Sequence[bytes]] = {}

    def categories(self, keys: bytes) -> Sequence[bytes]:
        """Return the custom properties of categories, the categories, and the label of the first one. `keys` are their ids with
        spaces between them."""
        shown = self._of_categories.get(keys)
        if shown is None:
            categories = [category for key in keys.decode().split() if (category := self._categories.get(key)) is not None]
            properties = [owned for category in categories for owned in category.custom_properties]
            shown = self._of_categories[keys] = (
                _PROPERTIES.dump_json(properties, by_alias=True, warnings=False),
                _OWNERS.dump_json(categories, by_alias=True, warnings=False),
                to_json(categories[0].label if categories else None),
            )
        return shown


NO_LINKS: Final = LinkedValues({})


def event_json(values: list[bytes], linked: LinkedValues, *, base_url: str, video: Video | None = None) -> bytes:
    """Return an Event as JSON: its values, and those of the request and of linked records, which are written to the list."""
    if values[_LINKS]:
        for place, name, kind in _LINKED:
            if values[place] != _NULL:
                values[name] = linked.names.get((kind, values[place]), _NULL)
        values[_TYPE_COLOUR] = linked.colours.get(values[_TYPE_ID], _NULL)
        if values[_CATEGORY_IDS]:
            values[_CATEGORIES] = linked.categories(values[_CATEGORY_IDS])
        if values[_THUMBNAIL_FLOW]:
            base = linked.storage.get(values[_THUMBNAIL_FLOW], "")
            values[_THUMBNAIL_URL] = to_json(url_below(base, values[_THUMBNAIL_PATH].decode()))
    address, key = to_json(base_url)[:-1], values[0][1:]
    values[_DOCUMENT_URL] = b"%b/api/document/event/%b" % (address, key)
    values[_TAG_URL] = b"%b/api/tag/event/%b" % (address, key)
    if values[_PROVISION] != _NULL:
        stored = StoredProvision.model_validate_json(values[_PROVISION])
        values[_PROVISION] = encode(ProvisionSummary.of(UUID(key[:-1].decode()), stored))
    if video is not None:
        values[_VIDEO] = encode(video)
    parts = _TEXTS.copy()
    parts[1::2] = _in_order(values)
    return b"".join(parts)


class ExternalIdCheck(Wire):
    """The result of a check whether an external id is free."""

    is_unique: bool = Field(alias="IsUnique", description="True if no Event has this external id; deleted Events do not count.")
    value: str = Field(alias="Value", description="The external id of the request.")
    value_type: str = Field(alias="ValueType", description="Always `ExternalId`.")
