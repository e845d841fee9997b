"""Sessions: work that runs until it is stopped, such as the encoders of a channel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from api.wiring.container import Providers, Services
from api.wiring.media import check_transcoder, media_files
from api.wiring.room import Room, WorkerRole
from api.wiring.rooms.publication import target_contents
from domain.event.aggregate import MediaEvent
from domain.kernel.ids import new_id
from domain.publication.aggregate import Publication
from domain.publication.sources import ChannelSources
from projections.client.directory import ClientDirectory
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.provision.queries import ProvisionQueries
from projections.publication.queries import PublicationQueries
from projections.publishing_point.points import Orderers
from projections.publishing_point.queries import PointStates
from projections.session.store import SessionQueries

if TYPE_CHECKING:
    from fastapi import APIRouter

    from workers.adapters.item_cache import ItemCache
    from workers.retention import Removal
    from workers.session.encoders import EncoderSessions
    from workers.session.kinds import SessionKind
    from workers.session.playouts import Playouts
    from workers.session.pushes import PushSessions
    from workers.session.worker import SessionWorker
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media import live_sessions

    return (live_sessions.routes,)


def _services(services: Services) -> Providers:
    return {SessionQueries: lambda: SessionQueries(services.get(Database))}


def _removals() -> Sequence[Removal]:
    from projections.session.store import remove_ended_sessions
    from workers.retention import Removal

    return [Removal("ended sessions", "session_days", remove_ended_sessions)]


def _sessions(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from projections.session.store import SessionStore
    from workers.kernel.wakeups import WakeupHub
    from workers.session.worker import CONSUMER, LEASE, PUSHES, SHARDS, SessionWorker

    check_transcoder(shared, context.places)
    files = _item_cache(context)
    hub = WakeupHub(context.signal(frozenset({MediaEvent.KIND, Publication.KIND}), on_air=True))
    member = new_id()

    def worker(kind: SessionKind, consumer: str) -> SessionWorker:
        leases = ShardLeases(
            context.database, consumer, shards=SHARDS, member=member, host=context.host, lease=LEASE, reads_log=False
        )
        store = SessionStore(context.database, kind.wanted)
        return SessionWorker(kind, store, leases=leases, waker=hub.waker(), host=context.host, metrics=context.metrics.sessions)

    return [hub, files, worker(_encoders(context, files), CONSUMER), worker(_pushes(context), PUSHES)]


def _pushes(context: WorkerContext) -> PushSessions:
    from workers.adapters.ffmpeg import choose
    from workers.adapters.pushes.copied import Copying
    from workers.adapters.pushes.live_stream import LiveStreams
    from workers.adapters.pushes.rtmp_push import RtmpPusher
    from workers.adapters.step_account import program_confinement
    from workers.publication.following import OpenedLiveTargets
    from workers.session.pushes import PushSessions

    client, confinement = context.connections, partial(program_confinement, places=context.places)
    return PushSessions(
        context.executor,
        PublicationQueries(context.database),
        EventQueries(context.database),
        sources=ChannelSources(context.records),
        targets=OpenedLiveTargets(target_contents(context)),
        pusher=RtmpPusher(client, LiveStreams(client, Copying(choose(context.places, "ffmpeg"), confinement))),
    )


def _item_cache(context: WorkerContext) -> ItemCache:
    from workers.adapters.item_cache import ItemCache

    return ItemCache(context.home / "playout", context.playout_limits)


def _playouts(context: WorkerContext, cache: ItemCache) -> Playouts:
    from projections.composition.queries import CompositionQueries
    from projections.session.store import SessionStore
    from workers.adapters.item_files import PlayoutFiles
    from workers.session.encoders import WANTED
    from workers.session.playouts import Playouts, StoredPlaylists

    client, media = context.connections, media_files(context.media_root, context.media_bucket)
    return Playouts(
        StoredPlaylists(CompositionQueries(context.database).of_event),
        PlayoutFiles(
            None if context.media_bucket else context.media_root,
            media,
            media,
            EventQueries(context.database),
            client,
            cache,
        ),
        SessionStore(context.database, WANTED),
        context.logbook,
        context.clock,
        context.metrics.playouts,
    )


def _encoders(context: WorkerContext, cache: ItemCache) -> EncoderSessions:
    from workers.adapters.encoders.known import encoders
    from workers.session.encoders import EncoderSessions

    states, client = PointStates(context.database), context.connections

    async def points_fail(channel: str) -> bool:
        return await states.all_failing_since(UUID(channel)) is not None

    return EncoderSessions(
        context.executor,
        EventQueries(context.database),
        context.records,
        hosts=ProvisionQueries(context.database),
        vault=context.vault,
        encoders=encoders(
            client,
            context.clock,
            media_root=None if context.media_bucket else context.media_root,
            devices=context.encoder_devices,
            headers=context.ingest_headers,
            permitted=Orderers(context.database, ClientDirectory(context.database, context.clock), context.clock).may_still,
            places=context.places,
        ),
        notes=context.logbook,
        points_fail=points_fail,
        playouts=_playouts(context, cache),
    )


SESSIONS = Room(
    name="sessions",
    migrations=(
        Migration.read("0016 sessions", "session/schema.sql"),
        Migration.read("0025 places of sessions", "session/place.sql"),
    ),
    routes=_routes,
    services=_services,
    removals=_removals,
    worker_roles=(WorkerRole("sessions", _sessions),),
)
