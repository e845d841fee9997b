"""The log and everything that reads and writes it: the common part of the API, the workers and the command line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from api.kernel.version import product_version
from api.operations.database_metrics import AppendMetrics, LostRaces, PoolMetrics
from api.operations.process_metrics import LoopDelay, register_process
from api.wiring.catalogue import DAY_TABLES, catalogue, grants, migrations, views
from api.wiring.startup import StartError
from domain.kernel.clock import Clock, system_clock
from domain.kernel.encryption import KeyRing
from domain.kernel.mapper import Catalogue, EventMapper
from projections.audit.redactor import Redactor
from projections.client.changes import ClientChanges
from projections.client.directory import ClientDirectory
from projections.kernel.database.database import APP_ROLE, Database, PoolLimits
from projections.kernel.schema.builds import BUILD, RunningBuild, schema_of
from projections.kernel.schema.migrate import (
    MigrationEdited,
    check_migrated,
    grant_application,
    may_migrate,
    migrate,
    waiting,
)
from projections.kernel.schema.stored_views import StoredViews
from projections.kernel.sql.partitions import cover
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.append import Appender
from projections.log.commit_notifier import CommitNotifier
from projections.log.executor import CommandExecutor
from projections.log.limits import DEFAULT_LIMITS, LogLimits
from projections.log.log_watcher import LogWatcher
from projections.log.partitions import Partitions
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from projections.record.queries import LinkUsers
from projections.vault.master_keys import ProcessKeys

_log = logging.getLogger(__name__)
_LOOK_AGAIN = 1.0


@dataclass
class Core:
    """The log and everything that reads and writes it."""

    database: Database
    registry: CollectorRegistry
    catalogue: Catalogue
    mapper: EventMapper
    views: StoredViews
    streams: Streams
    appender: Appender
    partitions: Partitions
    commit_notifier: CommitNotifier
    executor: CommandExecutor
    redactor: Redactor
    directory: ClientDirectory
    log_watcher: LogWatcher
    clock: Clock
    running_build: RunningBuild
    loop_delay: LoopDelay
    tracer: Tracer
    keys: ProcessKeys | None

    @property
    def ring(self) -> KeyRing:
        """The master keys."""
        assert self.keys is not None, "the core was made without master keys"
        return self.keys.ring

    async def start(self) -> None:
        """Start the services. Raise `BuildTooOld` if the database needs a newer build."""
        await self.database.open()
        await self.running_build.start()
        await self.partitions.start()
        await self.views.refresh()
        await self.appender.start()
        await self.commit_notifier.start()
        await self.loop_delay.start()

    async def stop(self) -> None:
        await self.loop_delay.stop()
        await self.appender.stop()
        await self.partitions.stop()
        await self.executor.stop()
        await self.commit_notifier.stop()
        await self.running_build.stop()
        await self.database.close()
        await self.tracer.stop()


def core(
    conninfo: str,
    *,
    role: str | None,
    ring: KeyRing | None = None,
    clock: Clock = system_clock,
    changes: ClientChanges | None = None,
    pools: PoolLimits | None = None,
    limits: LogLimits = DEFAULT_LIMITS,
    tracer: Tracer = UNTRACED,
) -> Core:
    """Return the core on a migrated database. Every connection assumes `role`. `changes` are shared with the other processes of the
    supervisor. Without `ring` the process has no master keys."""
    return core_on(
        Database(conninfo, role=role, schema=schema_of(BUILD), limits=pools),
        ring=ring,
        clock=clock,
        changes=changes,
        limits=limits,
        tracer=tracer,
    )


def core_on(
    database: Database,
    *,
    ring: KeyRing | None = None,
    clock: Clock = system_clock,
    changes: ClientChanges | None = None,
    limits: LogLimits = DEFAULT_LIMITS,
    tracer: Tracer = UNTRACED,
) -> Core:
    """Return the core on these connections."""
    event_catalogue, registry = catalogue(), CollectorRegistry()
    mapper, stored_views = EventMapper(event_catalogue), StoredViews(views().all, database)
    streams, commit_notifier, log_watcher = Streams(database, mapper), CommitNotifier(database), LogWatcher(database)

    def announce(position: int) -> None:
        log_watcher.grew()
        commit_notifier.announce(position)

    appends, loop_delay = AppendMetrics(registry), LoopDelay(registry)
    register_process(registry, version=product_version())
    PoolMetrics({"main": database, "lists": database.lists}, registry)
    appender = Appender(
        database, limits=limits.appends, observe=appends.taken, written=appends.written, announce=announce, views=stored_views
    )
    Gauge("medialedger_append_queue_age_seconds", "Age of the oldest change waiting to be written", registry=registry).set_function(
        lambda: appender.oldest
    )
    Gauge(
        "medialedger_log_ahead_of_clock_seconds",
        "How far the last recorded time is ahead of the database's clock",
        registry=registry,
    ).set_function(lambda: appender.ahead)
    partitions = Partitions(database, size=limits.partition)
    Gauge("medialedger_log_partitions_free", "Events for which the log has partitions", registry=registry).set_function(
        lambda: partitions.free
    )
    executor = CommandExecutor(
        appender,
        streams,
        mapper=mapper,
        views=stored_views,
        users=LinkUsers(database),
        clock=clock,
        cache=limits.cache,
        tracer=tracer,
    )
    LostRaces(executor, registry)
    directory = ClientDirectory(database, clock, changes=changes)
    keys = None if ring is None else ProcessKeys(database, ring)
    return Core(
        database,
        registry,
        event_catalogue,
        mapper,
        stored_views,
        streams,
        appender,
        partitions,
        commit_notifier,
        executor,
        Redactor(database, streams, appender=appender, mapper=mapper, views=stored_views, clock=clock),
        directory,
        log_watcher,
        clock,
        RunningBuild(database, keys=keys),
        loop_delay,
        tracer,
        keys,
    )


async def prepare(conninfo: str, *, owner: str | None = None) -> str | None:
    """Migrate, build missing views, and create the role of the application. Return the role's name, or None.

    `owner` is the address of the owner of the tables if the product has a login of its own. A login that may not migrate and is
    given no owner must find everything done.
    """
    async with Database.of_owner(owner or conninfo, size=4) as database:
        async with database.connection() as connection:
            if not await may_migrate(connection):
                return await _check(database)
        login = await _user_of(conninfo) if owner not in (None, conninfo) else None
        applied = await _refuse_edited(migrate(database, migrations()))
        await _cover_today(database)
        role = APP_ROLE if await grant_application(database, grants(), login=login) else None
        if login is not None and role is None:
            raise StartError(_NO_ROLE.format(role=APP_ROLE, login=login))
        built = await _rebuilder(database, role).ensure(views().all)
        if applied or built:
            _log.info("migrated: %s; built views: %s", ", ".join(applied) or "nothing", ", ".join(built) or "none")
        return role


_NO_ROLE = (
    "the database's owner may not create the role {role} or grant it to {login}; as a superuser: "
    'CREATE ROLE {role} NOLOGIN; GRANT {role} TO "{login}"'
)


async def _check(database: Database) -> str:
    lacking = await _refuse_edited(check_migrated(database, migrations())) or await _rebuilder(database, APP_ROLE).missing(
        views().all
    )
    if lacking:
        raise StartError(
            f"the database lacks {', '.join(lacking)}, and this database user may not migrate it; "
            "run `medialedger migrate` with MEDIALEDGER_OWNER_DATABASE_URL"
        )
    return APP_ROLE


async def _refuse_edited(work: Awaitable[list[str]]) -> list[str]:
    try:
        return await work
    except MigrationEdited as fault:
        raise StartError(f"{fault}; use the build that made this database, or a new database") from fault


async def _user_of(conninfo: str) -> str:
    async with Database(conninfo, limits=PoolLimits(1, 1)) as database:
        [(user,)] = await database.rows("SELECT session_user")
    return str(user)


async def _cover_today(owner: Database) -> None:
    """Create the partitions of this day, so that the first rows of a new database go to them."""
    connection = await owner.connect("partitions")
    try:
        for table in DAY_TABLES:
            await cover(connection, table, now=system_clock(), days=1, ahead=0)
    finally:
        await connection.close()


def _rebuilder(owner: Database, role: str | None) -> Rebuilder:
    return Rebuilder(owner, Streams(owner, EventMapper(catalogue())), app_role=role)


async def unfinished(database: Database) -> list[str]:
    """Return the names of the views and migrations that wait until no older build is running."""
    pending = await _rebuilder(database, None).unfinished(views().all)
    return [*(f"{view.name} version {view.version}" for view in pending), *await waiting(database, migrations())]


async def finish(conninfo: str, role: str | None) -> None:
    """Wait until no older build is running, and apply the migrations and build the views that had to wait for that."""
    async with Database.of_owner(conninfo, size=4) as owner:
        if built := await _rebuilder(owner, role).finish(views().all):
            _log.info("built views: %s", ", ".join(built))
        while await waiting(owner, migrations()):
            if not await migrate(owner, migrations()):
                await asyncio.sleep(_LOOK_AGAIN)
