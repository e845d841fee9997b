"""The list of every aggregate of the product: what the log may hold."""

from __future__ import annotations

from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey
from domain.job.aggregate import Job
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue
from domain.media_event.aggregate import MediaEvent
from domain.records.kinds.archiver_stream import ArchiverStream
from domain.records.kinds.category import Category
from domain.records.kinds.channel import Channel
from domain.records.kinds.chapter_point import ChapterPoint
from domain.records.kinds.custom_property import PROPERTIES
from domain.records.kinds.event_type import EventType
from domain.records.kinds.flow import Flow
from domain.records.kinds.infrastructure_profile import InfrastructureProfile
from domain.records.kinds.playlist import Playlist
from domain.records.kinds.playlist_item import PlaylistItem
from domain.records.kinds.room import Room
from domain.records.kinds.schedule import Schedule
from domain.records.kinds.setting import Setting
from domain.records.kinds.tag import Tag
from domain.records.kinds.webhook import Webhook
from domain.records.record import Record

RECORDS: tuple[type[Record], ...] = (
    Room,
    Tag,
    EventType,
    Category,
    *PROPERTIES,
    ChapterPoint,
    Playlist,
    PlaylistItem,
    Channel,
    Flow,
    InfrastructureProfile,
    ArchiverStream,
    Webhook,
    Setting,
    Schedule,
)
AGGREGATES: tuple[type[AggregateRoot], ...] = (MediaEvent, Client, ContentKey, Job, *RECORDS)


def catalogue() -> Catalogue:
    return Catalogue(AGGREGATES)
