"""Event answers as OpenAPI documents them. `shape.py` makes the answers; a test holds the two against each other."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Instant, Wire


class StreamUrlWire(Wire):
    stream_protocol: int
    stream_protocol_string: str
    url: str
    absolute_url_with_path_no_query: str
    stream_source: int
    stream_source_string: str


class RequestedStreamTimeWire(Wire):
    in_point_original_string: str | None
    out_point_original_string: str | None
    in_point_date_time: Instant | None
    out_point_date_time: Instant | None
    in_point_time_span: str
    out_point_time_span: str
    in_point_has_value: bool
    out_point_has_value: bool
    in_point_is_absolute_date_time: bool
    out_point_is_absolute_date_time: bool


class PublishingPointUrlWire(Wire):
    url: str
    state: str
    has_started: bool
    last_updated: Instant | None
    receiving_data: bool


class VideoWire(Wire):
    """Document 2, "Video object"."""

    web_page_url: str
    player_url: str
    embed_code: str
    scriptable_player_url: str
    scriptable_embed_code: str
    requested_stream_time: RequestedStreamTimeWire
    requested_audio_only: bool
    requested_auto_start: bool
    live_urls: list[StreamUrlWire]
    current_state_urls: list[StreamUrlWire]
    live_playout_profile_urls: dict[str, list[StreamUrlWire]]
    vod_urls: list[StreamUrlWire]
    archiver_capture_publishing_point_urls: list[StreamUrlWire]
    remix_urls: list[StreamUrlWire]
    archiver_urls: list[StreamUrlWire]
    private_mp4_url: str = Field(alias="privateMp4Url")
    public_mp4_url: str = Field(alias="publicMp4Url")
    websiteplayer_url: str
    website_embed_code: str
    scriptable_website_player_url: str
    scriptable_website_embed_code: str
    publishing_point_urls: list[PublishingPointUrlWire]
    ramp_servers: list[dict[str, Any]]


class EventWire(Wire):
    """Document 2, "Event object"."""

    id: UUID
    title: str
    ref_id: str
    external_id: str
    content_id: str
    description: str | None
    channel_id: UUID | None
    channel: str | None
    flow_id: UUID | None
    flow: str | None
    remixflow_id: UUID | None
    remixflow: str | None
    archiverflow_id: UUID | None
    archiverflow: str | None
    infrastructure_profile_id: UUID | None
    infrastructure_profile: str | None
    event_type_id: UUID | None
    event_type: str | None
    room_id: UUID | None
    room: str | None
    channel_profile_id: UUID | None
    custom_property_configuration_id: str
    event_type_colour: str | None
    state: int
    state_string: str
    mp4_state: int = Field(alias="mp4State")
    mp4_state_string: str = Field(alias="mp4StateString")
    auto_start: bool
    auto_end: bool
    auto_publish: bool
    auto_start_publications: bool
    auto_provision_infrastructure: bool
    auto_terminate_infrastructure: bool
    embeded_vod_timestamps: bool
    capturing_live2_vod: bool = Field(alias="capturingLive2Vod")
    external_update_allowed: bool
    vod_drm: bool
    remix_drm: bool
    display_start: Instant | None
    display_end: Instant | None
    scheduled_start: Instant | None
    scheduled_end: Instant | None
    scheduled_channel_start: Instant | None
    scheduled_channel_end: Instant | None
    actual_live_start: Instant | None
    actual_live_end: Instant | None
    published_start: Instant | None
    published_end: Instant | None
    instant_vod_start: Instant | None
    instant_vod_end: Instant | None
    scheduled_provision_at: Instant | None
    scheduled_terminate_at: Instant | None
    capture_vod_start: Instant | None
    capture_vod_end: Instant | None
    date_created: Instant
    date_modified: Instant
    date_deleted: Instant | None
    archiver_start: Instant | None
    archiver_end: Instant | None
    drm_json: str
    drm_data: Any
    remix_drm_json: str
    remix_drm_data: Any
    additional_streaming_options: str
    dvr_length: int
    dvr_length_url_param: int
    max_bitrate_url_param: int
    min_bitrate_url_param: int
    task_engine_json: str
    thumbnail: str
    thumbnail_url: str
    document_url: str
    tag_url: str
    custom_properties: list[dict[str, Any]]
    categories: list[dict[str, Any]]
    category: str | None
    category_id: UUID | None
    provision_info: dict[str, Any] | None
    archiver_capture_id: str
    archiver_profile_id: str
    video: VideoWire | None


class EventCollectionWire(Wire):
    """Document 2, "Event collection". `pageSize` is the size used: what was asked for, cut to 1000."""

    page_size: int
    total_count: int
    results: list[EventWire]


class IsUniqueWire(Wire):
    is_unique: bool = Field(alias="IsUnique")
    value: str = Field(alias="Value")
    value_type: str = Field(alias="ValueType")
