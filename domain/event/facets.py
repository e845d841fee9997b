"""The fields of a media Event in groups.

A facet is declared once and used three times: as the body of the domain event that changes it, as a part of the first event, and as
a part of the aggregate's state. Names are those of the API in snake case.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel


class Description(BaseModel):
    title: str | None = None
    description: str | None = None
    thumbnail: str | None = None


class EventReferences(BaseModel):
    ref_id: str | None = None
    external_id: str | None = None


class EventSchedule(BaseModel):
    scheduled_start: datetime | None = None
    scheduled_end: datetime | None = None
    scheduled_channel_start: datetime | None = None
    scheduled_channel_end: datetime | None = None


class PublicationWindow(BaseModel):
    published_start: datetime | None = None
    published_end: datetime | None = None


class InstantVodWindow(BaseModel):
    instant_vod_start: datetime | None = None
    instant_vod_end: datetime | None = None


class ArchiverWindow(BaseModel):
    archiver_start: datetime | None = None
    archiver_end: datetime | None = None


class Automation(BaseModel):
    auto_start: bool = False
    auto_end: bool = False
    auto_publish: bool = False
    auto_start_publications: bool = False
    auto_expire_publishing_points: bool = False


class ProvisioningPlan(BaseModel):
    infrastructure_profile_id: UUID | None = None
    scheduled_provision_at: datetime | None = None
    scheduled_terminate_at: datetime | None = None
    auto_provision_infrastructure: bool = False
    auto_terminate_infrastructure: bool = False


class RoomLink(BaseModel):
    room_id: UUID | None = None


class Classification(BaseModel):
    event_type_id: UUID | None = None
    category_ids: tuple[UUID, ...] = ()


class Tagging(BaseModel):
    tag_ids: tuple[UUID, ...] = ()


class ChannelLink(BaseModel):
    channel_id: UUID | None = None


class FlowLinks(BaseModel):
    flow_id: UUID | None = None
    remixflow_id: UUID | None = None
    archiverflow_id: UUID | None = None


class Drm(BaseModel):
    drm_json: str | None = None
    vod_drm: bool = False


class Streaming(BaseModel):
    additional_streaming_options: str | None = None
    dvr_length: int | None = None
    max_bitrate: int | None = None
    min_bitrate: int | None = None


class FlowTask(BaseModel):
    task_engine_json: str | None = None


class Capture(BaseModel):
    """The capture of the live stream as video on demand: its range, and whether it is running."""

    capturing_live2_vod: bool = False
    capture_vod_start: datetime | None = None
    capture_vod_end: datetime | None = None


class Particulars(
    Description,
    EventReferences,
    EventSchedule,
    PublicationWindow,
    InstantVodWindow,
    ArchiverWindow,
    Automation,
    ProvisioningPlan,
    RoomLink,
    Classification,
    Tagging,
    ChannelLink,
    FlowLinks,
    Drm,
    Streaming,
    FlowTask,
):
    """All fields of an Event that a caller writes, except its states."""
