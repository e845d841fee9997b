"""What endpoints may ask for, by type, and every route that may ask. Part of the composition root."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from socket import gethostname
from typing import Any

from prometheus_client import CollectorRegistry

from api.audit import routes as audit_routes
from api.audit.routes import Verifier
from api.audit.shown import PastStates
from api.core import Core
from api.engine import dashboard, files, job, schedule, search, setting
from api.engine import health as engine_health
from api.engine import log as job_log
from api.engine.callbacks import Callbacks
from api.engine.dashboard import Dashboards
from api.engine.files import DashboardFiles
from api.engine.live import LiveBoards
from api.engine.log import Followers
from api.engine.submission import Submissions
from api.kernel.auth import Caller, Role
from api.kernel.commands import CommandBus
from api.kernel.routes import Routes
from api.media import client, client_drm, consumer, content_key, health, log, resources
from api.media.chapter_point.writes import ChapterPoints
from api.media.configurations import Configurations
from api.media.custom_property import PropertyWrites
from api.media.event import routes as event_routes
from api.media.event.changes import EventChanges
from api.media.event.held import EventWrites
from api.media.event.show import EventAnswers
from api.media.health import Health
from api.media.webhook.writes import Webhooks
from api.operations import routes as operations_routes
from api.operations.asyncapi.document import AsyncApi
from api.operations.backlog import Backlog
from api.operations.routes import LogHead
from api.speke import routes as speke_routes
from api.speke.rate import PER_SECOND, RateLimit
from api.speke.ready import ReadyAnswers
from api.version import product_version
from domain.catalogue import AGGREGATES, RECORDS
from domain.kernel.mapper import Catalogue, EventMapper
from domain.kernel.sealed import Sealer
from projections.archiver_stream.numbers import ArchiverStreamNumbers
from projections.audit.actions import Actions
from projections.audit.queries import AuditQueries
from projections.audit.verify import verify
from projections.clients.directory import ClientDirectory
from projections.consumers.parked import Parked
from projections.consumers.queries import ConsumerQueries
from projections.content_keys.store import ContentKeys
from projections.custom_property.queries import PropertyQueries
from projections.deliveries.queries import DeliveryQueries
from projections.deliveries.resending import Resending
from projections.job.board import BoardQueries
from projections.job.counts import JobCounts
from projections.job.history import JobHistory
from projections.job.numbers import JobNumbers
from projections.job.queries import JobQueries
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.append import Appender
from projections.log.links import Links
from projections.logbook.logbook import Logbook
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.ffmpeg import Ffmpeg, installed
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.jobs.registry import installed as installed_workflows
from workers.ports import Outbound, WebhookProbe
from workers.webhooks.probe import Probe
from workers.wiring import RELAYED

ROUTES: Sequence[Routes] = (
    event_routes.routes,
    *resources.ROUTES,
    client.routes,
    client_drm.routes,
    content_key.routes,
    consumer.routes,
    log.routes,
    health.routes,
    audit_routes.routes,
    speke_routes.routes,
    job.routes,
    search.routes,
    job_log.routes,
    engine_health.routes,
    dashboard.routes,
    files.routes,
    setting.routes,
    schedule.routes,
    operations_routes.routes,
)


def services(inner: Core, conninfo: str, sealer: Sealer, *, outbound: Outbound, speke_rate: int = PER_SECOND) -> dict[Any, Any]:
    """What endpoints may ask for, by type."""
    records, properties = RecordQueries(inner.database, RECORDS), PropertyQueries(inner.database)
    events = EventQueries(inner.database)
    audit = AuditQueries(inner.database, inner.streams, inner.catalogue)
    bus, answers = CommandBus(inner.ledger, Links(inner.database)), EventAnswers(records, properties)
    machine, vault = gethostname(), Vault(inner.database, sealer)
    content_keys = ContentKeys(inner.database, ledger=inner.ledger, vault=vault, clock=inner.clock)
    logbook = Logbook(inner.database, inner.clock, machine=machine)
    consumers, deliveries = ConsumerQueries(inner.database), DeliveryQueries(inner.database)
    return {
        Database: inner.database,
        Appender: inner.appender,
        Catalogue: inner.catalogue,
        CollectorRegistry: inner.registry,
        ClientDirectory: inner.directory,
        CommandBus: bus,
        Configurations: Configurations(vault),
        RecordQueries: records,
        PropertyQueries: properties,
        PropertyWrites: PropertyWrites(bus, records, properties),
        ChapterPoints: ChapterPoints(bus, events, records, properties),
        Webhooks: Webhooks(bus, vault, events, records),
        **_engine(inner, bus, vault=vault, callbacks=Callbacks(vault, events, records)),
        ArchiverStreamNumbers: ArchiverStreamNumbers(inner.database),
        EventQueries: events,
        EventChanges: EventChanges(records),
        EventAnswers: answers,
        EventWrites: EventWrites(bus, answers, logbook=logbook),
        AuditQueries: audit,
        PastStates: PastStates(audit, properties, records),
        Verifier: Verifier(partial(verify, conninfo)),
        Logbook: logbook,
        Actions: Actions(inner.database),
        Health: Health(inner.database, Ffmpeg(installed()), machine=machine),
        ConsumerQueries: consumers,
        Parked: Parked(inner.database),
        DeliveryQueries: deliveries,
        Resending: Resending(inner.database),
        WebhookProbe: Probe(outbound, records=records, vault=vault, clock=inner.clock, version=product_version()),
        LogHead: LogHead(inner.database, inner.registry),
        Backlog: Backlog(consumers, deliveries, registry=inner.registry),
        AsyncApi: asyncapi(product_version()),
        ContentKeys: content_keys,
        RateLimit: RateLimit(speke_rate),
        ReadyAnswers: ReadyAnswers(),
    }


def _engine(inner: Core, bus: CommandBus, *, vault: Vault, callbacks: Callbacks) -> dict[Any, Any]:
    """What the job engine's endpoints ask for."""
    jobs, settings = JobQueries(inner.database), EngineSettingsQueries(inner.database)
    history = JobHistory(inner.database, EventMapper(inner.catalogue))
    dashboards = Dashboards(BoardQueries(inner.database), settings)
    numbers, workflows = JobNumbers(inner.database), installed_workflows()
    return {
        Callbacks: callbacks,
        Dashboards: dashboards,
        DashboardFiles: DashboardFiles(),
        EngineSettingsQueries: settings,
        Followers: Followers(jobs, history),
        JobCounts: JobCounts(inner.database),
        JobHistory: history,
        JobQueries: jobs,
        LiveBoards: LiveBoards(dashboards.live),
        Submissions: Submissions(bus, inner.streams, numbers=numbers, workflows=workflows, vault=vault, callbacks=callbacks),
        Vault: vault,
    }


def asyncapi(version: str) -> AsyncApi:
    relayed = Catalogue(kind for kind in AGGREGATES if kind.KIND in RELAYED)
    return AsyncApi(relayed, version=version, topic=Topics().of, partitions=PARTITIONS)


async def authenticate(directory: ClientDirectory, key: str) -> Caller | None:
    found = await directory.authenticate(key)
    return _caller(found.name, found.roles) if found is not None else None


@lru_cache(maxsize=1024)
def _caller(name: str, roles: tuple[str, ...]) -> Caller:
    return Caller(name, frozenset(map(Role, roles)))
