"""The composition root: every part of the product, put together once."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from socket import gethostname
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram

from api.audit import routes as audit_routes
from api.audit.routes import Verifier
from api.audit.shown import PastStates
from api.kernel.app import Application
from api.kernel.app import build as build_application
from api.kernel.auth import Caller, Role
from api.kernel.commands import CommandBus
from api.kernel.log import RequestLog
from api.kernel.routes import Routes
from api.media import client, consumer, health, log, resources
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
from api.settings import Settings
from api.startup import StartError
from api.version import product_version
from domain.catalogue import AGGREGATES, RECORDS, catalogue
from domain.client.commands import RegisterClient
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock, system_clock
from domain.kernel.errors import Conflict, DomainError
from domain.kernel.mapper import Catalogue, EventMapper
from domain.kernel.sealed import Marker, Sealer
from projections.archiver_stream.numbers import ArchiverStreamNumbers
from projections.audit.actions import Actions
from projections.audit.queries import AuditQueries
from projections.audit.verify import verify
from projections.catalogue import migrations, views
from projections.clients.directory import ClientDirectory
from projections.consumers.parked import Parked
from projections.consumers.queries import ConsumerQueries
from projections.custom_property.queries import PropertyQueries
from projections.deliveries.queries import DeliveryQueries
from projections.deliveries.resending import Resending
from projections.kernel.database import APP_ROLE, Database
from projections.kernel.migrate import grant_application, master_key_fits, migrate
from projections.kernel.rebuild import Rebuilder
from projections.kernel.view import Views
from projections.log.announce import Announcer
from projections.log.answers import KeptAnswers
from projections.log.append import Appender
from projections.log.growth import Growth
from projections.log.ledger import Ledger
from projections.log.links import Links
from projections.log.streams import Streams
from projections.logbook.logbook import Logbook
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.ffmpeg import Ffmpeg, installed
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.adapters.keyfiles import fingerprint, first_secret_file
from workers.adapters.outbound_http import GuardedClient
from workers.ports import Outbound, WebhookProbe
from workers.webhooks.probe import Probe
from workers.wiring import RELAYED, Ground, Workers

_log = logging.getLogger(__name__)

ROUTES: Sequence[Routes] = (
    event_routes.routes,
    *resources.ROUTES,
    client.routes,
    consumer.routes,
    log.routes,
    health.routes,
    audit_routes.routes,
    operations_routes.routes,
)
_EVERY = 10.0


@dataclass
class Core:
    """The log and everything that reads and writes it, without a web: what the command line needs too."""

    database: Database
    registry: CollectorRegistry
    catalogue: Catalogue
    views: Views
    streams: Streams
    appender: Appender
    announcer: Announcer
    ledger: Ledger
    directory: ClientDirectory
    growth: Growth
    clock: Clock

    async def start(self) -> None:
        await self.database.open()
        await self.appender.start()
        await self.announcer.start()

    async def stop(self) -> None:
        await self.appender.stop()
        await self.ledger.stop()
        await self.announcer.stop()
        await self.database.close()


def core(conninfo: str, *, role: str | None, clock: Clock = system_clock) -> Core:
    """Wire the log up on a migrated database. `role` is taken on by every connection."""
    database, known, registry = Database(conninfo, role=role), catalogue(), CollectorRegistry()
    mapper, shown = EventMapper(known), views()
    streams, announcer, growth = Streams(database, mapper), Announcer(database), Growth(database)

    def announce(position: int) -> None:
        growth.told(position)
        announcer.announce(position)

    appender = Appender(database, observe=_append_metrics(registry), announce=announce)
    Gauge("medialedger_append_queue_age_seconds", "Age of the oldest change waiting to be written", registry=registry).set_function(
        lambda: appender.oldest
    )
    ledger = Ledger(appender, streams, mapper=mapper, views=shown, clock=clock)
    directory = ClientDirectory(database, clock)
    return Core(database, registry, known, shown, streams, appender, announcer, ledger, directory, growth, clock)


def _append_metrics(registry: CollectorRegistry) -> Callable[[int, float], None]:
    sizes = Histogram(
        "medialedger_append_batch_events",
        "Domain events in one commit",
        buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
        registry=registry,
    )
    waits = Histogram(
        "medialedger_append_wait_seconds",
        "How long the first change of a commit had waited",
        buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5),
        registry=registry,
    )

    def observe(events: int, waited: float) -> None:
        sizes.observe(events)
        waits.observe(waited)

    return observe


async def prepare(conninfo: str) -> str | None:
    """Migrate, build missing or outdated views, and make the application's role; its name, if there may be one."""
    async with Database(conninfo, size=4) as owner:
        applied = await migrate(owner, migrations())
        role = APP_ROLE if await grant_application(owner) else None
        rebuilder = Rebuilder(owner, Streams(owner, EventMapper(catalogue())), app_role=role)
        built = await rebuilder.ensure(views().all)
        if applied or built:
            _log.info("migrated: %s; built views: %s", ", ".join(applied) or "nothing", ", ".join(built) or "none")
        return role


class Medialedger:
    """The product as the command line starts and stops it."""

    def __init__(
        self,
        inner: Core,
        app: Application,
        *,
        workers: Workers,
        outbound: Outbound,
        answers: KeptAnswers,
        request_log: RequestLog,
        settings: Settings,
    ) -> None:
        self.core = inner
        self._answers = answers
        self.app = app
        self._workers = workers
        self._outbound = outbound
        self._request_log = request_log
        self._settings = settings
        self._chores: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self.core.start()
        await self._first_admin()
        await self._workers.start()
        self._chores = [
            asyncio.create_task(_regularly(self.core.directory.write_use, _EVERY), name="key use"),
            asyncio.create_task(_regularly(self._answers.sweep, 3600.0), name="answers sweep"),
        ]

    async def stop(self) -> None:
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self._workers.stop()
        await self._outbound.close()
        with suppress(DomainError):
            await self.core.directory.write_use()
        await self.core.stop()
        self._request_log.flush()

    def summary(self) -> Sequence[tuple[str, str]]:
        working = ", ".join(self._workers.names) or "none in this process; medialedger workers runs them"
        return [("admin key", _admin_key_place(self._settings)), ("workers", working)]

    async def _first_admin(self) -> None:
        """At the first start there is nobody who could make a client: make `admin`."""
        if any("admin" in known.roles for known in await self.core.directory.all()):
            return
        place = admin_key_file(self._settings)
        key = self._settings.admin_api_key or first_secret_file(place, client.new_key()[1])
        new, _ = client.new_key(key)
        with suppress(Conflict):  # another process was first
            await self.core.ledger.execute(RegisterClient("admin", ("admin",), new), cause=Cause.by("system"))
        self.core.directory.forget()
        if self._settings.admin_api_key is None and await self.core.directory.authenticate(key) is None:
            place.unlink(missing_ok=True)  # of another home: its file holds the key that counts


def admin_key_file(settings: Settings) -> Path:
    return settings.home / "admin-api-key"


def _admin_key_place(settings: Settings) -> str:
    if settings.admin_api_key is not None:
        return "as MEDIALEDGER_ADMIN_API_KEY was at the first start"
    place = admin_key_file(settings)
    return str(place) if place.exists() else "handed out before; a new one: medialedger client rotate admin"


async def _regularly(chore: Callable[[], Awaitable[Any]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await chore()
        except Exception:
            _log.exception("a chore failed; it will be tried again")


async def build(settings: Settings, database: str, master_key: bytes, *, roles: Sequence[str] = ()) -> Medialedger:
    """Everything, on a database that answers. `roles` are the workers of this process. Raises `StartError` for what a person can
    mend."""
    inner = await ground(database, master_key)
    answers, request_log = KeptAnswers(inner.database), RequestLog(sys.stderr, clock=inner.clock)
    outbound = GuardedClient(settings.outbound_allow)
    workers = working(inner, master_key, outbound=outbound, kafka=settings.kafka_bootstrap_servers, roles=roles)
    app = build_application(
        ROUTES,
        services(inner, database, master_key, outbound=outbound),
        authenticate=partial(authenticate, inner.directory),
        answers=answers,
        fingerprint=Marker(master_key),
        registry=inner.registry,
        request_log=request_log,
        version=product_version(),
    )
    return Medialedger(inner, app, workers=workers, outbound=outbound, answers=answers, request_log=request_log, settings=settings)


async def ground(database: str, master_key: bytes) -> Core:
    """The log on a database that is made ready first. Raises `StartError` when it was sealed with another key."""
    inner = core(database, role=await prepare(database))
    await _check_master_key(database, master_key)
    return inner


def working(inner: Core, master_key: bytes, *, outbound: Outbound, kafka: str | None, roles: Sequence[str]) -> Workers:
    """The workers of this process, not yet started. `kafka` are the brokers, if there are any."""
    records = RecordQueries(inner.database, RECORDS)
    base = Ground(
        database=inner.database,
        growth=inner.growth,
        streams=inner.streams,
        ledger=inner.ledger,
        records=records,
        vault=Vault(inner.database, Sealer(master_key)),
        logbook=Logbook(inner.database, inner.clock, machine=gethostname()),
        outbound=outbound,
        clock=inner.clock,
        kafka=kafka,
        host=gethostname(),
        version=product_version(),
    )
    return Workers(base, roles)


def services(inner: Core, conninfo: str, master_key: bytes, *, outbound: Outbound) -> dict[Any, object]:
    """What endpoints may ask for, by type."""
    records, properties = RecordQueries(inner.database, RECORDS), PropertyQueries(inner.database)
    events = EventQueries(inner.database)
    audit = AuditQueries(inner.database, inner.streams, inner.catalogue)
    bus, answers = CommandBus(inner.ledger, Links(inner.database)), EventAnswers(records, properties)
    machine, vault = gethostname(), Vault(inner.database, Sealer(master_key))
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


async def _check_master_key(conninfo: str, master_key: bytes) -> None:
    """The key seals what the database holds; another key would find nothing readable, so say it now."""
    async with Database(conninfo, size=1) as owner:
        if not await master_key_fits(owner, fingerprint(master_key)):
            raise StartError("the master key is not the one that this database was sealed with; check MEDIALEDGER_MASTER_KEY_FILE")
