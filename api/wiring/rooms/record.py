"""The simple resources: each is a kind of `Record` with a route file. `record_view` shows the kinds that have no view of
their own."""

from __future__ import annotations

from api.wiring.room import Room
from domain.record.kinds.archiver_stream import ArchiverStream
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import PROPERTIES
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.kinds.playlist import Playlist
from domain.record.kinds.playlist_item import PlaylistItem
from domain.record.kinds.room import Room as LectureRoom
from domain.record.kinds.tag import Tag
from domain.record.ports import Numbers, PropertyLookup, RecordLookup, RecordReader
from projections.custom_property.queries import PropertyQueries
from projections.custom_property.view import CUSTOM_PROPERTY_VIEW
from projections.kernel.schema.migrate import Grant, Migration
from projections.record.history import OwnedRecords
from projections.record.queries import ArchiverStreamNumbers, RecordQueries

RECORDS = Room(
    name="records",
    aggregates=(
        LectureRoom,
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
    ),
    views=(CUSTOM_PROPERTY_VIEW,),
    migrations=(Migration.read("0007 archiver streams", "record/archiver_streams.sql"),),
    grants=(Grant("SEQUENCE archiver_stream_numbers", "USAGE"),),
    routes=("api.media.resources:ROUTES",),
    services={
        Numbers: ArchiverStreamNumbers,
        OwnedRecords: PropertyQueries,
        PropertyLookup: PropertyQueries,
        RecordLookup: RecordQueries,
        RecordQueries: "api.wiring.providers:record_queries",
        RecordReader: "api.wiring.providers:present_records",
    },
    past_states=("api.media.resources:past_states",),
    notified="workers.webhook.notified.record:NOTIFIED",
)
