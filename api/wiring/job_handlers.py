"""The use cases of jobs with their adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.asset.handlers import AssetJobOwners
from domain.composition.handlers import CompositionJobOwners
from domain.event.vod_jobs import VodJobOwners, why_hidden
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.owners import OwnersOfRooms
from domain.kernel.clock import Clock
from domain.publication.handlers import PublicationJobOwners
from projections.event.queries import EventQueries
from projections.job.log_lines import JobNotes
from projections.job.queue import JobNumbers
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from workers.job.registry import installed

if TYPE_CHECKING:
    from workers.wiring import WorkerContext


def job_handlers(
    database: Database, executor: CommandExecutor, *, streams: Streams, records: RecordQueries, vault: Vault, clock: Clock
) -> JobHandlers:
    """Return the use cases for the API, workers and `medialedger jobs`, which all submit jobs in the same way."""
    events = EventQueries(database)
    return JobHandlers(
        executor,
        streams.load,
        numbers=JobNumbers(database),
        workflows=installed(),
        vault=vault,
        callbacks=JobCallbacks(vault, events, records, clock=clock, new_signing_secret=new_signing_secret),
        owners=OwnersOfRooms(
            VodJobOwners(events, records, clock=clock), AssetJobOwners(), CompositionJobOwners(), PublicationJobOwners()
        ),
        clock=clock,
        notes=JobNotes(database, why_hidden, clock=clock),
    )


def job_handlers_of(context: WorkerContext) -> JobHandlers:
    """Return the use cases of jobs for the workers of a process."""
    return job_handlers(
        context.database,
        context.executor,
        streams=context.streams,
        records=context.records,
        vault=context.vault,
        clock=context.clock,
    )
