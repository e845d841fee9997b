"""The worker roles of a process, on a database that is prepared first. No part of the API is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from socket import gethostname
from urllib.parse import urlsplit

from api.kernel.version import product_version
from api.wiring.catalogue import AGGREGATES, DAY_TABLES, RECORDS, RELAYED, WORKER_ROLES, followups, notified, owners, removals
from api.wiring.core import Core, core, prepare
from api.wiring.master_keys import fitting_keys
from api.wiring.media import publishing_targets, target_settings
from api.wiring.origin import ingest_headers, own_origin, step_tokens
from api.wiring.rooms.publication import open_destination
from api.wiring.settings import Settings
from domain.kernel.media_files import MediaFiles
from projections.client.changes import ClientChanges
from projections.kernel.database.database import PoolLimits
from projections.kernel.sizes import GIB
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.limits import DEFAULT_LIMITS, LogLimits
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.ffmpeg import find, libraries
from workers.adapters.program_verdicts import Verdicts
from workers.audit.index import AuditIndex
from workers.audit.redactions import Redactions
from workers.audit.verification import LogVerification
from workers.kernel.confinement import Places
from workers.kernel.media_programs import MEDIA_PROGRAMS
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.quiet import QuietMode
from workers.playout.ports import ItemLimits
from workers.ports.outbound import Connections, DownloadLimits
from workers.retention import Retention
from workers.wiring import WorkerContext, Workers


def download_limits(settings: Settings) -> DownloadLimits:
    """Return the limits on downloads of jobs."""
    return DownloadLimits(
        size=settings.download_gib * GIB,
        free=settings.download_free_gib * GIB,
        rate=settings.download_kib_per_second * 1024,
        seconds=settings.download_hours * 3600,
    )


def playout_limits(settings: Settings) -> ItemLimits:
    """Return the limits on the item caches of playouts."""
    return ItemLimits(size=settings.playout_gib * GIB, age=settings.playout_hours * 3600.0)


def step_places(settings: Settings) -> Places:
    """Return the places that steps and encoders may read and write in addition to their own. Secrets are hidden, wherever they are
    stored."""
    secret = (settings.home, settings.master_key_file, settings.kafka_key_file)
    programs = media_programs(settings.home)
    return Places(
        hidden=tuple(str(path.absolute()) for path in secret if path is not None),
        run=tuple(str(folder) for program in programs.values() for folder in (program.resolve().parent, *libraries(program))),
        read=tuple(map(str, settings.step_reads)),
        write=tuple(map(str, settings.step_writes)),
        programs={name: str(program) for name, program in programs.items()},
    )


def media_programs(home: Path) -> Mapping[str, Path]:
    """Map the names of the media programs that are installed to their paths."""
    programs = {name: find(name, verdicts=Verdicts(home)) for name in MEDIA_PROGRAMS}
    return {name: program for name, program in programs.items() if program is not None}


async def prepared_core(
    database: str,
    master_key_file: Path,
    *,
    owner: str | None = None,
    changes: ClientChanges | None = None,
    processes: int = 1,
    pools: PoolLimits | None = None,
    limits: LogLimits = DEFAULT_LIMITS,
    tracer: Tracer = UNTRACED,
) -> Core:
    """Return the core on a migrated database, with the keys of its secrets. Raise `StartError` if the master key is missing or is
    another one. The limits on waiting changes are for all `processes`."""
    role = await prepare(database, owner=owner)
    ring = await fitting_keys(database, master_key_file)
    return core(database, role=role, ring=ring, changes=changes, pools=pools, limits=limits.among(processes), tracer=tracer)


def process_workers(
    core: Core,
    *,
    outbound: Connections,
    files: MediaFiles,
    settings: Settings,
    roles: Sequence[str],
    quiet: QuietMode,
) -> Workers:
    """Return the workers of this process, not yet started. A role that needs Kafka is omitted if there is no broker. `quiet` is
    that of `outbound`."""
    context = WorkerContext(
        database=core.database,
        log_watcher=core.log_watcher,
        streams=core.streams,
        mapper=core.mapper,
        executor=core.executor,
        records=RecordQueries(core.database, RECORDS),
        vault=Vault(core.database, core.ring.cipher),
        logbook=Logbook(core.database, core.clock, machine=gethostname()),
        outbound=outbound,
        connections=outbound,
        clock=core.clock,
        metrics=WorkerMetrics(core.registry),
        tracer=core.tracer,
        kafka=settings.kafka,
        kinds=frozenset(kind.KIND for kind in AGGREGATES),
        relayed=RELAYED,
        notified=notified,
        home=settings.home,
        owners=owners,
        followups=followups,
        media_root=settings.media_directory,
        files=files,
        outbound_allow=settings.outbound_allow,
        own_origin=own_origin(settings),
        ingest_headers=ingest_headers(own_origin(settings), core.ring.ingest, clock=core.clock),
        step_tokens=step_tokens(own_origin(settings), core.ring.ingest, clock=core.clock),
        encoder_devices=settings.encoder_devices,
        downloads=download_limits(settings),
        steps=settings.steps,
        lease=settings.lease_seconds,
        drain=settings.shutdown_seconds,
        host=gethostname(),
        public_host=urlsplit(settings.public_url).netloc if settings.public_url else gethostname(),
        version=product_version(),
        open_destination=open_destination,
        targets=publishing_targets(settings, quiet),
        target_settings=target_settings(settings),
        media_bucket=settings.media_bucket,
        playout_limits=playout_limits(settings),
        terraform=settings.terraform,
        places=step_places(settings),
        checkpoints=settings.checkpoints,
        quiet=quiet,
    )
    chosen = [WORKER_ROLES[name] for name in roles]
    retention = Retention(core.database, tables=DAY_TABLES, removals=removals(), days=partial(getattr, settings), clock=core.clock)
    makes = {role.name: role.make for role in chosen if context.kafka is not None or not role.needs_kafka}
    permanent = [
        retention,
        Redactions(core.database, core.redactor, core.executor),
        LogVerification(core.database, core.registry),
        AuditIndex(core.database),
    ]
    return Workers(context, makes, inside={role.name for role in chosen if role.inside}, permanent=permanent)
