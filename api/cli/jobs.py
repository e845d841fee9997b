"""`medialedger jobs submit` on the database, for any client. The other actions call the REST API."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace

from api.cli import shell
from api.cli.job_parameters import parameters
from api.cli.job_watch import watch
from api.cli.remote.progress import state_of
from api.cli.run.core import open_vault
from api.wiring.assembly import services_of
from api.wiring.core import Core
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.values import JobState
from domain.kernel.errors import DomainError
from projections.job.board import BoardQueries
from projections.job.queries import JobQueries

_ADMIN = "admin"


async def run(args: Namespace, settings: Settings) -> int:
    job_parameters = await asyncio.to_thread(parameters, args)
    job = NewJob(client=args.client or _ADMIN, workflow=args.workflow, parameters=job_parameters, priority=args.priority)
    try:
        async with open_vault(settings) as (wired, _):
            handlers = services_of(wired, settings).get(JobHandlers)
            accepted = await handlers.submit_job(job, invocation=shell.invocation())
            print(f"job {accepted.aggregate.number}", flush=True)
            return await _wait(wired, accepted.aggregate.number) if args.wait else 0
    except DomainError as refusal:
        raise StartError(str(refusal)) from None


async def _wait(wired: Core, number: int) -> int:
    """Follow the job to its end and return the exit code. On an interruption the workers continue the job."""
    jobs = JobQueries(wired.database)
    try:
        await watch(jobs, BoardQueries(wired.database), ids=[number])
    except asyncio.CancelledError:
        print(f"medialedger: the job continues; `medialedger jobs watch {number}` shows its progress", file=sys.stderr)
        raise
    row = await jobs.by_id(number)
    job = await wired.streams.load(Job.stream(number))
    if row is None or not isinstance(job, Job):
        raise StartError(f"job {number} does not exist any more")
    if row.failed or row.state is not JobState.COMPLETED:
        reasons = [task.error for task in job.tasks.values() if task.error]
        raise StartError(f"job {number} is {state_of(row)}" + "".join(f": {reason}" for reason in reasons[-1:]))
    return 0
