"""The use cases of jobs with their adapters."""

from __future__ import annotations

from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.kernel.clock import Clock
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
    database: Database, executor: CommandExecutor, *, streams: Streams, records: RecordQueries, vault: Vault, clock: Clock
) -> JobHandlers:
    """For the API and for `medialedger jobs`: both submit jobs in the same way."""
    callbacks = JobCallbacks(vault, EventQueries(database), records, clock=clock, new_signing_secret=new_signing_secret)
    return JobHandlers(
        executor, streams.load, numbers=JobNumbers(database), workflows=installed(), vault=vault, callbacks=callbacks
    )
