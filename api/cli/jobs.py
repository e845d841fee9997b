"""`medialedger jobs`: submits, lists, shows and follows jobs; pauses, resumes, breaks and reruns them."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from api.cli import shell
from api.cli.job_progress import progress_text, state_of, watch
from api.cli.open_core import open_core
from api.cli.open_vault import open_vault
from api.cli.polling import INTERVAL, retry_unavailable, until_interrupted
from api.cli.printable import printable
from api.cli.secret_text import secret_text
from api.engine.job_log_text import record
from api.engine.log import LogFollower
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.job_handlers import job_handlers
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.job.aggregate import Job
from domain.job.commands import BreakJob, JobCommand, UpdateJob
from domain.job.handlers import JobChanges, JobHandlers, NewJob
from domain.job.task import Task
from domain.job.values import JobState
from domain.kernel.clock import iso
from domain.kernel.errors import DomainError, NotFound
from projections.job.board import BoardQueries, TaskProgress
from projections.job.history import BEGINNING, JobHistory, LogEvent, LogLine
from projections.job.queries import JobFilter, JobQueries, JobRow
from projections.kernel.page import LARGEST
from projections.records.queries import RecordQueries

_INDENT = " " * 10


async def run(args: Namespace, settings: Settings) -> int:
    try:
        if args.action in _BY_HANDLERS:
            async with open_vault(settings) as (wired, vault):
                records = RecordQueries(wired.database, RECORDS)
                handlers = job_handlers(
                    wired.database, wired.executor, streams=wired.streams, records=records, vault=vault, clock=wired.clock
                )
                submitted = await _BY_HANDLERS[args.action](handlers, args)
                if getattr(args, "wait", False):
                    return await _waited(wired, submitted)
        else:
            async with open_core(settings) as wired:
                await _ACTIONS[args.action](wired, args)
    except DomainError as refusal:
        raise StartError(str(refusal)) from None
    return 0


# --- queries


async def _list(wired: Core, args: Namespace) -> None:
    """A failed job that was broken or run again since is not listed as failed: an operator has handled it."""
    state = None if args.state is None else JobState[args.state.upper()]
    query = JobFilter(
        limit=min(args.items, LARGEST),
        state=JobState.COMPLETED if args.failed and state is None else state,
        failed=True if args.failed else None,
        search=args.search,
        client=args.client,
    )
    for row in await JobQueries(wired.database).search(query):
        print("  ".join(_summary(row)))


def _summary(row: JobRow) -> Iterator[str]:
    yield f"{row.id:>6}"
    yield f"{state_of(row):<9}"
    yield f"priority {row.priority:>2}"
    yield f"{printable(row.client)}  {printable(row.workflow)}"
    yield f"accepted {iso(row.created_at)}"
    if row.state is JobState.SCHEDULED and row.run_at is not None:
        yield f"to be queued {iso(row.run_at)}"
    if row.position:
        yield f"position {row.position}"


async def _show(wired: Core, args: Namespace) -> None:
    row = await _existing(JobQueries(wired.database), args.id)
    job = await wired.streams.load(Job.stream(args.id))
    assert isinstance(job, Job), "a job in the view is in the log"
    tasks = {one.task: one for one in await BoardQueries(wired.database).tasks([row.id])}
    print(f"job {row.id}  {state_of(row)}  {printable(row.workflow)} of {printable(row.client)}")
    for name, value in _facts(row, job):
        print(f"  {name:<12}{printable(value)}")
    for number, task in job.tasks.items():
        print(f"  task {number:<7}{'  '.join(_task(task, tasks.get(number)))}")
        if task.error:
            print(f"{_INDENT}    {printable(task.error)}")


def _facts(row: JobRow, job: Job) -> Iterator[tuple[str, str]]:
    yield "content", job.submission.content_id
    yield "priority", f"{row.priority}, position {row.position}" if row.position else str(row.priority)
    yield "accepted", iso(row.created_at)
    yield "changed", iso(row.updated_at)
    if row.run_at is not None:
        yield "run at", iso(row.run_at)
    if row.semaphore is not None:
        yield "semaphore", row.semaphore.url
    yield "parameters", row.parameters or ""
    if job.reason:
        yield "reason", job.reason


def _task(task: Task, seen: TaskProgress | None) -> Iterator[str]:
    yield printable(task.plan.name)
    yield task.state.name.lower() if seen is None else seen.state.name.lower()
    if task.attempts:
        yield f"attempt {task.attempts}"
    if task.worker:
        yield f"on {printable(task.worker)}"
    if task.due_at is not None and not task.under_way:
        yield f"not before {iso(task.due_at)}"
    if seen is not None and progress_text(seen):
        yield progress_text(seen)


async def _logs(wired: Core, args: Namespace) -> None:
    jobs, history = JobQueries(wired.database), JobHistory(wired.database, wired.mapper)
    await _existing(jobs, args.id)
    if not args.follow:
        cursor, more = BEGINNING, True
        while more:
            page = await history.since(args.id, cursor)
            for entry in page.entries:
                _print_entry(entry, args.id)
            cursor, more = page.end(cursor), page.more
        return
    with until_interrupted():
        await _follow(LogFollower(jobs, history), args.id)


async def _follow(follower: LogFollower, job: int) -> None:
    """Until the job has ended and nothing new is found."""
    seen = BEGINNING
    while True:
        ended, news = await retry_unavailable(partial(follower.poll, job, seen))
        for entry in news:
            seen = seen.after(entry)
            _print_entry(entry, job)
        if ended and not news:
            return
        await asyncio.sleep(INTERVAL)


def _print_entry(entry: LogEvent | LogLine, job: int) -> None:
    shown = record(entry, job)
    task = "" if shown.task_id is None else f"  task {shown.task_id}"
    head = f"{iso(shown.created_at)}  {shown.severity_description:<5}  {shown.progname}{task}"
    first, *more = map(printable, shown.message.splitlines() or [""])
    print("\n".join([f"{head}  {first}", *(f"{_INDENT}{line}" for line in more)]), flush=True)


async def _watch(wired: Core, args: Namespace) -> None:
    jobs = JobQueries(wired.database)
    for number in args.ids:
        await _existing(jobs, number, client=args.client)
    with until_interrupted():
        await watch(jobs, BoardQueries(wired.database), ids=args.ids, client=args.client)


async def _existing(jobs: JobQueries, number: int, *, client: str | None = None) -> JobRow:
    row = await jobs.by_id(number, client)
    if row is None:
        raise NotFound(Job.KIND, str(number) if client is None else f"{number} of the client {client}")
    return row


# --- commands


async def _pause(wired: Core, args: Namespace) -> None:
    await _execute(wired, UpdateJob(args.id, {"queue_state": JobState.PAUSED}))


async def _break(wired: Core, args: Namespace) -> None:
    await _execute(wired, BreakJob(args.id))


async def _execute(wired: Core, command: JobCommand) -> None:
    _print_state((await wired.executor.execute(command, invocation=shell.invocation())).aggregate)


def _print_state(job: Job) -> None:
    print(f"job {job.number} is {job.state.name.lower()}")


async def _resume(handlers: JobHandlers, args: Namespace) -> int:
    """Its owner may refuse, as it may over HTTP."""
    outcome = await handlers.update_job(args.id, JobChanges(state=JobState.QUEUED), invocation=shell.invocation())
    _print_state(outcome.aggregate)
    return outcome.aggregate.number


async def _rerun(handlers: JobHandlers, args: Namespace) -> int:
    outcome = await handlers.rerun_job(args.id, invocation=shell.invocation())
    number: int = outcome.aggregates[0].number
    print(f"job {args.id} is run again as job {number}")
    return number


async def _submit(handlers: JobHandlers, args: Namespace) -> int:
    parameters = await _parameters(args)
    job = NewJob(client=args.client, workflow=args.workflow, parameters=parameters, priority=args.priority)
    outcome = await handlers.submit_job(job, invocation=shell.invocation())
    print(f"job {outcome.aggregate.number}", flush=True)
    return outcome.aggregate.number


async def _parameters(args: Namespace) -> dict[str, Any]:
    """Those of the file, and over them those of the command line."""
    given: Any = {}
    if args.file is not None:
        try:
            given = json.loads(await asyncio.to_thread(secret_text, args.file))
        except ValueError:
            raise StartError("the parameters are not JSON") from None
        if not isinstance(given, dict):
            raise StartError("the parameters are not a JSON object")
    return {**given, **dict(args.parameters)}


async def _waited(wired: Core, number: int) -> int:
    """Interrupted, it leaves the job to the workers."""
    jobs = JobQueries(wired.database)
    try:
        await watch(jobs, BoardQueries(wired.database), ids=[number], client=None)
    except asyncio.CancelledError:
        print(f"medialedger: the job goes on; `medialedger jobs watch {number}` shows how far it is", file=sys.stderr)
        raise
    row = await _existing(jobs, number)
    if row.failed or row.state is not JobState.COMPLETED:
        job = await wired.streams.load(Job.stream(number))
        assert isinstance(job, Job), "a job in the view is in the log"
        reasons = [task.error for task in job.tasks.values() if task.error]
        raise StartError(f"job {number} is {state_of(row)}" + "".join(f": {reason}" for reason in reasons[-1:]))
    return 0


_BY_HANDLERS: Mapping[str, Callable[[JobHandlers, Namespace], Awaitable[int]]] = {
    "submit": _submit,
    "resume": _resume,
    "rerun": _rerun,
}
"""These need the master key: secrets of jobs and of their callbacks are in the vault."""
_ACTIONS = {
    "list": _list,
    "show": _show,
    "logs": _logs,
    "watch": _watch,
    "pause": _pause,
    "break": _break,
}
