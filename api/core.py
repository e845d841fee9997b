"""The log and everything that reads and writes it, put together without a web. Part of the composition root."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge, Histogram

from domain.catalogue import catalogue
from domain.kernel.clock import Clock, system_clock
from domain.kernel.mapper import Catalogue, EventMapper
from projections.catalogue import migrations, views
from projections.clients.directory import ClientDirectory
from projections.kernel.database import APP_ROLE, Database
from projections.kernel.migrate import grant_application, migrate
from projections.kernel.rebuild import Rebuilder
from projections.kernel.view import Views
from projections.log.announce import Announcer
from projections.log.append import Appender
from projections.log.growth import Growth
from projections.log.ledger import Ledger
from projections.log.streams import Streams

_log = logging.getLogger(__name__)


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
