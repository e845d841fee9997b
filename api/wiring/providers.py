"""Makes the services that need more than the types of their constructors: settings, adapters, and functions of other services.

The modules of rooms bind these functions to types. Adapters are imported inside, so that a process imports only those it uses.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prometheus_client import CollectorRegistry

from api.wiring.catalogue import AGGREGATES, DAY_TABLES, RECORDS, RELAYED, REMOVALS, notified, owners
from api.wiring.container import Container
from api.wiring.parts import Directories, RefusedTargets, ServiceTemplates
from api.wiring.rooms import ROOMS
from api.wiring.settings import Settings
from domain.asset.handlers import AssetHandlers, AssetJobOwners
from domain.channel.hosts import ProvisionedHosts
from domain.channel.pushing_server import PushingServer
from domain.composition.handlers import CompositionJobOwners
from domain.content_key.handlers import ContentKeyHandlers
from domain.event.ports import EventLookup
from domain.event.vod_jobs import VodJobOwners, why_hidden
from domain.job.owners import OwnersOfRooms
from domain.kernel.clock import Clock
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor, ServiceNotes
from domain.kernel.ports import Vault as VaultPort
from domain.provision.values import Deployment
from domain.publication.handlers import PublicationJobOwners
from domain.record.kinds.quiet import Quiet
from domain.record.ports import RecordLookup
from projections.composition.queries import CompositionQueries
from projections.job.log_lines import StoredJobNotes
from projections.kernel.database.database import Database, Pool
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.log_store.log_store import Logbook
from projections.publishing_point.own_points import StoredPointOwners
from projections.publishing_point.points import ChannelPointsReader, Orderers
from projections.publishing_point.queries import PointStates
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries
from projections.vault.vault import new_signing_secret
from workers.adapters.kafka.connection import KafkaConnection
from workers.kernel.confinement import Places
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.point_tokens import PointNames, PointTokens
from workers.kernel.quiet import QuietMode
from workers.kernel.settings import AggregateKinds, EncoderDevices, Home, Identity, MediaPlace, OutboundRules, StepSettings
from workers.ports.checkpoints import CheckpointPlaces
from workers.ports.media import MediaSource
from workers.ports.outbound import Download, DownloadLimits, Outbound, OutboundConnections
from workers.ports.playout import ItemLimits
from workers.ports.targets import Targets, TargetSettings

if TYPE_CHECKING:
    from api.media.health_overview import Overview
    from domain.content_key.ports import RandomBytes
    from domain.event.asset_sync import SyncAssets
    from domain.job.ports import JobOwners, LoadAggregate
    from domain.record.ports import RecordReader
    from domain.webhook.callback_naming import NewSigningSecret
    from workers.adapters.ffmpeg import Ffmpeg
    from workers.adapters.free_space import FreeSpace
    from workers.adapters.item_cache import ItemCache
    from workers.adapters.kafka.feed import KafkaBroker
    from workers.adapters.outbound_http import GuardedClient
    from workers.adapters.program_verdicts import Verdicts
    from workers.adapters.pushes.rtmp_push import RtmpPusher
    from workers.adapters.targets.registry import TargetRegistry
    from workers.audit.sealing.sealer import Anchoring
    from workers.event.outcomes.policy import OwnerCommands
    from workers.job.content_protection import ContentProtection
    from workers.job.inputs import Inputs
    from workers.job.step_process_pool import StepProcessPool
    from workers.job.workspaces import RunFiles
    from workers.ports.points import PointStatuses
    from workers.ports.provisioners import Provisioners
    from workers.provision.callbacks import ServiceCallbacks
    from workers.publication.served import MakeStreamTargets
    from workers.publication.trial import TargetTrials
    from workers.retention import Retention
    from workers.session.encoders import EncoderSessions
    from workers.session.playouts import Playouts
    from workers.webhook.policy import Meanings
    from workers.webhook.sender.probe import Probe


# Values and functions.


def random_bytes() -> RandomBytes:
    return os.urandom


def signing_secrets() -> NewSigningSecret:
    return new_signing_secret


def lists(database: Database) -> Pool:
    """Return the connections of lists. A constructor that takes a `Pool` gets these."""
    return database.lists


def aggregate_kinds() -> AggregateKinds:
    return AggregateKinds(frozenset(kind.KIND for kind in AGGREGATES), RELAYED)


def record_queries(database: Database) -> RecordQueries:
    return RecordQueries(database, RECORDS)


def load_aggregate(streams: Streams) -> LoadAggregate:
    return streams.load


def present_records(history: RecordHistory) -> RecordReader:
    return history.at(None)


def logbook(database: Database, clock: Clock, *, identity: Identity) -> Logbook:
    return Logbook(database, clock, machine=identity.machine)


def sync_assets(assets: AssetHandlers) -> SyncAssets:
    return assets.sync


def point_owners(database: Database, channels: ChannelPointsReader, *, names: PointNames) -> StoredPointOwners:
    return StoredPointOwners(database, channels, names)


# Jobs.


def job_owners(events: EventLookup, records: RecordLookup, *, clock: Clock) -> JobOwners:
    return OwnersOfRooms(
        VodJobOwners(events, records, clock=clock), AssetJobOwners(), CompositionJobOwners(), PublicationJobOwners()
    )


def job_notes(database: Database, clock: Clock) -> StoredJobNotes:
    return StoredJobNotes(database, why_hidden, clock=clock)


def owner_commands(executor: Executor, container: Container) -> OwnerCommands:
    from workers.event.outcomes.policy import OwnerCommands

    followups = {kind: container.call(path) for room in ROOMS for kind, path in room.followups.items()}
    return OwnerCommands(executor, owners=owners(), followups=followups)


def content_protection(streams: Streams, keys: ContentKeyHandlers, *, identity: Identity) -> ContentProtection:
    from workers.job.content_protection import ContentProtection

    return ContentProtection(streams, keys, host=identity.public_host)


def run_files(media: MediaPlace, clock: Clock, *, container: Container) -> RunFiles:
    """Return the files of runs: below the media root, and in the bucket if there is one."""
    from workers.job.workspaces import Workspaces

    local = Workspaces(media.root)
    if media.bucket is None:
        return local
    from workers.job.bucket_workspaces import BucketWorkspaces
    from workers.job.inputs import Inputs

    inputs = container.get(Inputs)
    return BucketWorkspaces(local, inputs.store, inputs=inputs, clock=clock)


def step_inputs(media: MediaPlace, limits: DownloadLimits) -> Inputs | None:
    """Return the inputs from the bucket; None if media are in a directory."""
    if media.bucket is None:
        return None
    from workers.adapters.s3_bucket import S3Bucket
    from workers.job.inputs import Inputs

    return Inputs(media.root, S3Bucket(media.bucket), limits=limits)


def step_processes(
    media: MediaPlace,
    home: Home,
    *,
    rules: OutboundRules,
    tokens: PointTokens,
    targets: TargetSettings,
    downloads: DownloadLimits,
    steps: StepSettings,
    places: Places,
    metrics: WorkerMetrics,
    container: Container,
) -> StepProcessPool:
    from workers.adapters.step_account import step_account
    from workers.job.inputs import Inputs
    from workers.job.media_paths import JOBS
    from workers.job.step_process_pool import StepProcessPool

    account, groups = step_account(media.root, jobs=JOBS, home=home.path)
    pool: StepProcessPool = container.call(
        StepProcessPool,
        media_root=media.root,
        allow=rules.allow,
        origin=rules.origin,
        point_tokens=tokens.of_step,
        targets=targets,
        downloads=downloads,
        inputs=container.get(Inputs),
        lease_seconds=steps.lease,
        account=account,
        groups=groups,
        places=places,
        metrics=metrics,
    )
    return pool


# Adapters.


def outbound(rules: OutboundRules, quiet: QuietMode, *, tokens: PointTokens) -> GuardedClient:
    from workers.adapters.outbound_http import GuardedClient

    return GuardedClient(rules.allow, origin=rules.origin, permit=quiet.permit, read_token=tokens.to_read)


def targets(rules: OutboundRules, quiet: QuietMode, *, settings: TargetSettings) -> TargetRegistry:
    """Return the targets of this process. None of them is reached while the installation is quiet."""
    from workers.adapters.outbound_http import GuardedClient
    from workers.adapters.step_account import program_account
    from workers.adapters.targets.registry import TargetRegistry

    client = partial(GuardedClient, rules.allow, permit=quiet.permit)
    return TargetRegistry(client, settings=settings, account=partial(program_account, Path(sys.executable)), quiet=quiet)


def target_trials(targets: Targets, refused: RefusedTargets) -> TargetTrials:
    from workers.publication.trial import TargetTrials

    return TargetTrials(targets, refused=refused.reasons)


def stream_targets(client: OutboundConnections) -> MakeStreamTargets:
    """Return a function that makes the targets of a streaming server."""
    from workers.adapters.targets.wowza import WowzaServer, WowzaStreamTargets

    def make(server: PushingServer) -> WowzaStreamTargets:
        own = WowzaServer(server.url, server.application, server.user, server.password)
        return WowzaStreamTargets(own, client=client)

    return make


def media_store(media: MediaPlace) -> Any:
    """Return the published files. The client of buckets is imported only if there is a bucket, since that takes a third of a
    second."""
    from workers.adapters.media_directory import MediaDirectory

    if media.bucket is None:
        return MediaDirectory(media.root)
    from workers.adapters.media_bucket import MediaBucket
    from workers.adapters.s3_bucket import S3Bucket

    return MediaBucket(S3Bucket(media.bucket))


def media_source(files: MediaFiles) -> Any:
    return files


def transcoder(places: Places) -> Ffmpeg:
    from workers.adapters.ffmpeg import Ffmpeg, choose
    from workers.adapters.step_account import program_account

    return Ffmpeg(choose(places, "ffmpeg"), account=program_account)


def broker(connection: KafkaConnection | None, database: Database) -> KafkaBroker | None:
    if connection is None:
        return None
    from workers.adapters.kafka.feed import KafkaBroker

    return KafkaBroker(connection, database)


def anchoring(database: Database, places: CheckpointPlaces, *, quiet: QuietMode, clock: Clock, outbound: Outbound) -> Anchoring:
    """Return the configured anchors of the log. Others are not imported: a library for buckets takes a fifth of the time of a
    start."""
    from workers.audit.sealing.sealer import Anchoring

    anchors: list[Any] = []
    if places.file is not None:
        from workers.adapters.file_anchor import FileAnchor

        anchors.append(FileAnchor(places.file))
    if places.bucket is not None:
        from workers.adapters.file_anchor import BucketAnchor

        anchors.append(BucketAnchor(places.bucket, days=places.bucket_days, clock=clock))
    if places.time_stamps is not None:
        from workers.audit.sealing.time_stamp import TimeStamp

        anchors.append(TimeStamp(places.time_stamps, outbound))
    return Anchoring(database, anchors, quiet=quiet)


def provisioners(home: Home, outbound: Outbound) -> Provisioners:
    """Return the provisioners of this machine."""
    from workers.adapters.provisioners.service import ServiceProvisioner
    from workers.adapters.provisioners.service_file import ServiceFiles
    from workers.adapters.provisioners.static import StaticProvisioner
    from workers.adapters.provisioners.templates import TemplateProvisioner
    from workers.adapters.provisioners.terraform import TerraformProvisioner
    from workers.ports.provisioners import Provisioners

    templates, root = home.path / "templates", home.path / "provision"
    service = ServiceProvisioner(outbound, ServiceFiles(templates, root=root))
    template = TemplateProvisioner(TerraformProvisioner(home.terraform, templates=templates, root=root), service)
    return Provisioners({Deployment.STATIC: StaticProvisioner(), Deployment.TEMPLATE: template}, service.hurry)


def service_callbacks(database: Database, templates: ServiceTemplates, *, clock: Clock) -> ServiceCallbacks:
    from workers.adapters.provisioners.service_file import ServiceFiles
    from workers.provision.callbacks import ServiceCallbacks

    folder = templates.folder
    signing_key = ServiceFiles(folder, root=folder).signing_key if folder is not None else lambda _: b""
    return ServiceCallbacks(database, signing_key, clock=clock)


def point_statuses(outbound: Outbound, clock: Clock) -> PointStatuses:
    from workers.adapters.point_status.strategies import point_status
    from workers.ports.points import PointStatuses

    return PointStatuses(point_status(outbound, clock))


# Webhooks.


def meanings() -> Meanings:
    from workers.webhook.policy import Meanings

    return Meanings(notified())


def webhook_probe(clock: Clock, identity: Identity, *, container: Container) -> Probe:
    from pydantic_core import to_json

    from workers.webhook.callbacks.policy import sample as sample_callback
    from workers.webhook.fanout import sample as sample_notification
    from workers.webhook.sender.probe import Probe

    def sample(client: str | None) -> str:
        """Return the body of a test: a notice for a callback of this client, or a notification if `client` is None."""
        return sample_notification() if client is None else to_json(sample_callback(client=client, at=clock())).decode()

    probe: Probe = container.call(Probe, version=identity.version, samples=sample)
    return probe


# Sessions.


def pusher(places: Places, client: OutboundConnections) -> RtmpPusher:
    """Return what pushes live streams to platforms."""
    from workers.adapters.ffmpeg import choose
    from workers.adapters.pushes.live_stream import StreamOpener
    from workers.adapters.pushes.rtmp_push import RtmpPusher
    from workers.adapters.pushes.stream_copy import Copying
    from workers.adapters.step_account import program_confinement

    copying = Copying(choose(places, "ffmpeg"), partial(program_confinement, places=places))
    return RtmpPusher(client, StreamOpener(client, copying))


def item_cache(home: Home, limits: ItemLimits) -> ItemCache:
    from workers.adapters.item_cache import ItemCache

    return ItemCache(home.path / "playout", limits)


def playouts(
    database: Database,
    client: Download,
    *,
    media: MediaPlace,
    source: MediaSource,
    files: MediaFiles,
    events: EventLookup,
    compositions: CompositionQueries,
    notes: ServiceNotes,
    clock: Clock,
    metrics: WorkerMetrics,
    container: Container,
) -> Playouts:
    """Return what makes the programmes that encoders play."""
    from projections.session.store import SessionStore
    from workers.adapters.item_cache import ItemCache
    from workers.adapters.item_files import PlayoutFiles
    from workers.session.encoders import WANTED
    from workers.session.playouts import Playouts, StoredPlaylists

    items = PlayoutFiles(media.directory, source, files, events, client, container.get(ItemCache))
    playlists, store = StoredPlaylists(compositions.of_event), SessionStore(database, WANTED)
    return Playouts(playlists, items, store, notes, clock, metrics.playouts)


def encoder_sessions(
    executor: CommandExecutor,
    events: EventLookup,
    *,
    records: RecordLookup,
    hosts: ProvisionedHosts,
    vault: VaultPort,
    notes: ServiceNotes,
    states: PointStates,
    orderers: Orderers,
    client: OutboundConnections,
    clock: Clock,
    media: MediaPlace,
    devices: EncoderDevices,
    tokens: PointTokens,
    places: Places,
    container: Container,
) -> EncoderSessions:
    from workers.adapters.encoders.registry import encoders
    from workers.session.encoders import EncoderSessions
    from workers.session.playouts import Playouts

    async def points_fail(channel: str) -> bool:
        return await states.all_failing_since(UUID(channel)) is not None

    return EncoderSessions(
        executor,
        events,
        records,
        hosts=hosts,
        vault=vault,
        encoders=encoders(
            client,
            clock,
            media_root=media.directory,
            devices=devices.allowed,
            headers=tokens.headers,
            permitted=orderers.may_still,
            places=places,
        ),
        notes=notes,
        points_fail=points_fail,
        playouts=container.get(Playouts),
    )


# Maintenance.


def retention(database: Database, clock: Clock, *, settings: Settings) -> Retention:
    from workers.retention import Retention

    return Retention(database, tables=DAY_TABLES, removals=REMOVALS, days=partial(getattr, settings), clock=clock)


def overview(database: Database, directories: Directories, *, clock: Clock) -> Overview:
    """Return the overview of the health."""
    from api.media.health_overview import Overview, OverviewQueries
    from projections.audit.unsealed_events import Unsealed
    from projections.consumers.queries import ConsumerQueries
    from projections.event.due_events import DueEvents
    from projections.event.queries import EventQueries
    from projections.job.backlog import JobBacklogQueries
    from projections.publishing_point.own_points import LostRecordings
    from projections.session.store import SessionQueries
    from projections.webhook.queries import DeliveryQueries
    from workers.adapters.ffmpeg import find
    from workers.adapters.free_space import LOW, free_bytes
    from workers.kernel.media_programs import MEDIA_PROGRAMS

    lists, own_verdicts = database.lists, verdicts(directories)
    queries = OverviewQueries(
        database,
        ConsumerQueries(database),
        DeliveryQueries(database),
        due=DueEvents(lists),
        events=EventQueries(database),
        jobs=JobBacklogQueries(lists),
        points=PointStates(database),
        records=RecordQueries(database, (Quiet,)),
        sessions=SessionQueries(lists),
        lost=LostRecordings(database),
        unsealed=Unsealed(lists),
    )
    return Overview(
        queries,
        clock=clock,
        free=lambda: {name: free_bytes(path) for name, path in directories.paths.items()},
        missing=lambda: [name for name in MEDIA_PROGRAMS if find(name, verdicts=own_verdicts) is None],
        low=LOW,
    )


def verdicts(directories: Directories) -> Verdicts | None:
    """Return the results of the trials of media programs, which are in the home."""
    from workers.adapters.program_verdicts import Verdicts

    return Verdicts(directories.paths["home"]) if "home" in directories.paths else None


def free_space(database: Database, directories: Directories, *, registry: CollectorRegistry) -> FreeSpace:
    """Return the free space of the directories, which the breaker of the database reports as the cause of an outage."""
    from workers.adapters.free_space import FreeSpace

    space = FreeSpace(directories.paths, registry=registry)
    database.availability.explain = space.shortage
    return space
