"""The use cases of jobs with their adapters."""

from __future__ import annotations

from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.ports import Workflows
from domain.kernel.clock import Clock
from domain.media_event.vod_jobs import VodJobOwners
from projections.job.numbers import JobNumbers
from projections.kernel.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.signing_secrets import new_signing_secret
from projections.vault.vault import Vault
from workers.jobs.registry import installed


def job_handlers(
    database: Database,
    executor: CommandExecutor,
    *,
    streams: Streams,
    records: RecordQueries,
    vault: Vault,
    clock: Clock,
    workflows: Workflows | None = None,
) -> JobHandlers:
    """For the API and for `medialedger jobs`: both submit jobs in the same way. `workflows` are the installed ones unless given."""
    events = EventQueries(database)
    return JobHandlers(
        executor,
        streams.load,
        numbers=JobNumbers(database),
        workflows=workflows or installed(),
        vault=vault,
        callbacks=JobCallbacks(vault, events, records, clock=clock, new_signing_secret=new_signing_secret),
        owners=VodJobOwners(events, records, clock=clock),
    )
