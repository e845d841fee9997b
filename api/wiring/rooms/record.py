"""The simple resources: each is a kind of `Record` with a route file. `record_view` shows the kinds that have no view of
their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.channel.handlers import ConfigurationHandlers, ProfileHandlers
from domain.event.aggregate import MediaEvent
from domain.kernel.event import DomainEvent
from domain.record.chapter_point_handlers import ChapterPointHandlers
from domain.record.handlers import ArchiverStreamHandlers, PlaylistHandlers, RecordHandlers, TagHandlers
from domain.record.kinds.archiver_stream import ArchiverStream
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import PROPERTIES, CategoryProperty, ChapterPointProperty
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.kinds.playlist import Playlist
from domain.record.kinds.playlist_item import PlaylistItem
from domain.record.kinds.room import Room as LectureRoom
from domain.record.kinds.tag import Tag
from domain.record.ports import RecordRow
from domain.record.property_handlers import PropertyHandlers
from domain.record.record import Record
from projections.custom_property.queries import PropertyQueries
from projections.custom_property.view import CUSTOM_PROPERTY_VIEW
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.publishing_point.own_points import PointOwners
from projections.publishing_point.points import ChannelPointsReader
from projections.record.history import RecordHistory
from projections.record.queries import ArchiverStreamNumbers, RecordQueries
from projections.vault.vault import Vault

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from workers.webhook.policy import Notified


def _routes() -> Sequence[APIRouter]:
    from api.media import resources

    return resources.ROUTES


def _services(services: Services) -> Providers:
    get = services.get
    return {
        PropertyQueries: lambda: PropertyQueries(get(Database)),
        RecordHistory: lambda: RecordHistory(get(Streams), get(RecordQueries), properties=get(PropertyQueries)),
        RecordHandlers: lambda: RecordHandlers(get(CommandExecutor), get(RecordHistory).at(None)),
        ConfigurationHandlers: lambda: ConfigurationHandlers(get(CommandExecutor), get(Vault), get(PointOwners)),
        PointOwners: lambda: PointOwners(get(Database), get(ChannelPointsReader), services.environment.point_name),
        ProfileHandlers: lambda: ProfileHandlers(get(RecordHandlers)),
        PropertyHandlers: lambda: PropertyHandlers(get(CommandExecutor), get(RecordQueries), properties=get(PropertyQueries)),
        ChapterPointHandlers: lambda: ChapterPointHandlers(
            get(CommandExecutor), get(RecordQueries), properties=get(PropertyQueries), events=get(EventQueries)
        ),
        TagHandlers: lambda: TagHandlers(get(CommandExecutor), get(RecordQueries)),
        PlaylistHandlers: lambda: PlaylistHandlers(get(CommandExecutor), get(RecordQueries), events=get(EventQueries)),
        ArchiverStreamHandlers: lambda: ArchiverStreamHandlers(get(CommandExecutor), ArchiverStreamNumbers(get(Database))),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    """Return the renderers of records with their children at that moment."""
    from api.media import category as responses
    from api.media.chapter_point import chapter_point_with_children
    from api.media.resources import SHAPES

    history = services.get(RecordHistory)

    async def record(root: Record, moment: Moment) -> Any:
        return SHAPES[root.KIND](RecordRow.of(root))

    async def category(root: Category, moment: Moment) -> Any:
        owned = await history.at(moment.position).of_owners(CategoryProperty, [root.key])
        return responses.Category.of(RecordRow.of(root), owned.get(root.key, ()))

    async def chapter_point(root: ChapterPoint, moment: Moment) -> Any:
        return await chapter_point_with_children(history.at(moment.position), RecordRow.of(root))

    return {**dict.fromkeys(SHAPES, record), Category.KIND: category, ChapterPoint.KIND: chapter_point}


def _notified() -> Mapping[str, Notified]:
    from workers.webhook.policy import NOTHING, Change, Notified, Owner

    def changes(event: DomainEvent) -> Change:
        return Change.CHAPTER_POINTS

    def shown(*fields: str) -> Callable[[DomainEvent], Change]:
        """Return the meaning of changes to fields that Events show. A new record is not shown by any Event yet, and a record that
        an Event shows is not deleted."""

        def changes(event: DomainEvent) -> Change:
            return Change.METADATA if event.verb() == "amended" and event.facts().keys() & set(fields) else NOTHING

        return changes

    def of_properties(event: DomainEvent) -> Change:
        return Change.METADATA

    return {
        LectureRoom.KIND: Notified(changes=shown("name"), shown_by="room_id"),
        EventType.KIND: Notified(changes=shown("name", "colour"), shown_by="event_type_id"),
        Category.KIND: Notified(changes=shown("name", "label", "description"), shown_by="category_ids"),
        CategoryProperty.KIND: Notified(
            changes=of_properties, owner=Owner(CategoryProperty.PARENT, Category.KIND), shown_by="category_ids"
        ),
        ChapterPoint.KIND: Notified(changes=changes, owner=Owner(ChapterPoint.PARENT, MediaEvent.KIND)),
        ChapterPointProperty.KIND: Notified(changes=changes, owner=Owner(ChapterPointProperty.PARENT, ChapterPoint.KIND)),
    }


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
    routes=_routes,
    services=_services,
    past_states=_past_states,
    notified=_notified,
)
