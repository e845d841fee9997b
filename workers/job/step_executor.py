"""Executes one run of a task, from its start to its end. ADR 0021.

Each report to the job is a command that names the run. If that run is not the current one any more, nothing is written and the
files of the step are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import perf_counter
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic_core import from_json

from domain.job.aggregate import Job, RetryPolicy
from domain.job.task import Task
from domain.job.values import Fenced, JobState, Result, TaskState
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import Conflict, DecryptionFailed, Unavailable
from domain.kernel.masking import secret_texts
from domain.kernel.ports import Invocation
from projections.job.queue import QueuedRun
from projections.job.settings import EngineSettingsQueries
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.vault.vault import Vault
from workers.job.caption_answers import TEXT, CaptionAnswers
from workers.job.content_protection import FindProtection
from workers.job.media_paths import PathEscape, is_own
from workers.job.protocol import Answer, Finished, Protection, StepFailure, StepOrder
from workers.job.publication_uploads import PublicationUploads
from workers.job.publishers import PublishedByAnother
from workers.job.step_log import StepLogWriter, StepReporter
from workers.job.step_process_pool import NO_ANSWERS, StepProcessPool
from workers.job.step_spans import StepSpans
from workers.job.stream_starts import StreamStarts
from workers.job.workspaces import RunFiles
from workers.kernel.metrics import WorkerMetrics

T = TypeVar("T")
_AGAIN: Final = 0.5
_LONGEST_ERROR: Final = 2_000
PUBLICATION_UPLOAD: Final = "publication_upload"
CAPTIONS: Final = "captions"

_log = logging.getLogger(__name__)


Workers = Mapping[str, str]
"""Names of workers by their queues."""


@dataclass(frozen=True, slots=True)
class AssignedRun:
    """A run that this process is to execute.

    `worker` is its name in events. `publishing` means that the step has ended, and only its files must be moved to their places.
    `job` is the job in which the run was started; it is absent if only files are to be published. `ended` is called before the task
    is completed. It returns the workers that start the next task of the job, in the append that completes this one.
    """

    run: QueuedRun
    worker: str
    transaction_id: str
    ended: Callable[[QueuedRun, Job], Awaitable[Workers]]
    publishing: bool = False
    job: Job | None = None


class StepExecutor:
    """Executes runs and reports their outcome to the job."""

    def __init__(
        self,
        executor: CommandExecutor,
        processes: StepProcessPool,
        *,
        streams: Streams,
        workspaces: RunFiles,
        step_log: StepLogWriter,
        vault: Vault,
        settings: EngineSettingsQueries,
        protection: FindProtection,
        starts: StreamStarts,
        uploads: PublicationUploads,
        captions: CaptionAnswers,
        metrics: WorkerMetrics,
        spans: StepSpans,
    ) -> None:
        self._executor = executor
        self._processes = processes
        self._streams = streams
        self._workspaces = workspaces
        self._step_log = step_log
        self._vault = vault
        self._settings = settings
        self._protection = protection
        self._starts = starts
        self._uploads = uploads
        self._captions = captions
        self._metrics = metrics
        self._spans = spans
        self._stepping: set[QueuedRun] = set()

    @property
    def warning(self) -> str | None:
        """A text about the protections that this machine lacks; None if it lacks none."""
        return self._processes.warning

    def is_stepping(self, run: QueuedRun) -> bool:
        """Return True if the step of this run is running now.

        Before and after, commands to the job detect that a run is not current.
        """
        return run in self._stepping

    async def retries(self, client: str) -> RetryPolicy:
        """Return the current retry settings of a client."""
        settings = (await self._settings.of([client]))[client]
        return RetryPolicy(settings.retry_limit, timedelta(seconds=settings.retry_delay))

    async def execute(self, assigned: AssignedRun) -> Job:
        """Execute a run, and return the job after it. Raises `Fenced` if the run is not current any more.

        If this is cancelled, it kills the step at once and writes nothing.
        """
        async with self._spans.span_of(assigned.run):
            return await self._execute(assigned)

    async def _execute(self, assigned: AssignedRun) -> Job:
        run = assigned.run
        job = await self._load(run) if assigned.job is None else await self._step(assigned.job, assigned)
        task = job.tasks[run.task]
        if task.state is TaskState.PUBLISHING and task.run == run.run:
            job = await self._publish(job, assigned)
        if job.ended:
            self._metrics.job_ended(job.submission.workflow, outcome=_outcome(job))
        return job

    async def clean_up(self, job: Job, run: QueuedRun) -> None:
        """Delete the files that an executed run leaves.

        This may take long, so the next task of the job may have been started already. Files of a failed job are deleted too: many
        failed jobs of one client would fill the disk for all.
        """
        if job.ended:
            await self._workspaces.remove([run.job])
            if _outcome(job) == "completed" and job.submission.workflow == PUBLICATION_UPLOAD:
                await _until_available(lambda: self._uploads.forget(run.job))
            sent = _sent_text(job)
            if sent is not None and _outcome(job) == "completed":
                await _until_available(lambda: self._captions.forget(sent))
        elif job.tasks[run.task].state is TaskState.COMPLETED:
            await self._workspaces.discard_runs(run)
        elif await self._workspaces.has_files(run):  # this run has copied what it could use from earlier runs
            await self._discard_before(run)

    async def _discard_before(self, run: QueuedRun) -> None:
        """Delete the earlier runs down to the last one that has files: anything before that one was deleted when it ended."""
        for number in range(run.run - 1, 0, -1):
            earlier = run._replace(run=number)
            had_files = await self._workspaces.has_files(earlier)
            await self._workspaces.discard(earlier)
            if had_files:
                return

    async def report(self, command: Command[Job], transaction_id: str) -> Job:
        """Execute a command, repeatedly until it succeeds. The worker cancels this when its lease is lost."""
        return await _until_available(lambda: self.execute_once(command, transaction_id))

    async def execute_once(self, command: Command[Job], transaction_id: str) -> Job:
        """Execute a command, and return the job after it."""
        invocation = Invocation(Cause.by("system", correlation_id=transaction_id, trace_parent=self._spans.trace_parent))
        return (await self._executor.execute(command, invocation=invocation)).aggregate

    def lost(self, job: Job, run: QueuedRun) -> None:
        """Count the run of a worker that stopped responding."""
        self._metrics.run_ended(job.submission.workflow, job.tasks[run.task].plan.name, outcome="lost")

    async def _load(self, run: QueuedRun) -> Job:
        job = await _until_available(lambda: self._streams.load(Job.stream(run.job)))
        assert isinstance(job, Job), "a task belongs to a job in the log"
        return job

    async def _step(self, job: Job, assigned: AssignedRun) -> Job:
        run, task = assigned.run, job.tasks[assigned.run.task]
        self._spans.describe(workflow=job.submission.workflow, step=task.plan.name)
        try:
            parameters = await self._parameters(job)
        except DecryptionFailed:
            return await self._fail(job, run, reason="the parameters cannot be opened with the present master key", final=True)
        reporter = StepReporter(
            self._step_log, run, secrets=secret_texts(dict(parameters)) if job.submission.sealed_parameters else frozenset()
        )
        self._stepping.add(run)
        begun, outcome = perf_counter(), "stopped"
        try:
            order = _order(job, task, run, parameters)
            made = await self._processes.run(
                order,
                reporter,
                protection=self._find_protection,
                starts=self._find_start,
                tracks=self._captions.tracks,
                removed=self._captions.removed,
                more=self._further_answers(order, run),
            )
            end = await self._stage(run, made, content_id=job.submission.content_id)
            outcome = "completed" if not isinstance(end, StepFailure) else "interrupted" if end.interrupted else "failed"
        finally:
            self._stepping.discard(run)
            seconds = perf_counter() - begun
            self._spans.ended(outcome)
            self._metrics.run_ended(job.submission.workflow, task.plan.name, outcome=outcome, seconds=seconds)
        await reporter.flush()
        if isinstance(end, StepFailure):
            return await self._fail_step(job, run, end, reporter)
        result = reporter.clean_result(end.result)
        if not end.outputs:
            return await self._complete(job, assigned, result)
        return await self.report(
            Job.commit_outputs.on(run.job, run.task, run=run.run, outputs=end.outputs, result=result), job.transaction_id
        )

    async def _stage(self, run: QueuedRun, end: Finished | StepFailure, *, content_id: str) -> Finished | StepFailure:
        if isinstance(end, StepFailure) or not end.outputs:
            return end
        if not all(is_own(output.path, output.name, job=run.job, content_id=content_id) for output in end.outputs):
            return StepFailure("The process of the step named a file that is not its own.", final=True)
        try:
            await self._workspaces.stage(run, end.outputs)
        except OSError as fault:
            return StepFailure(f"the files of the step could not be stored: {fault.strerror or fault}")
        return end

    async def _fail_step(self, job: Job, run: QueuedRun, end: StepFailure, reporter: StepReporter) -> Job:
        if end.interrupted:
            return await self.report(Job.interrupt_task.on(run.job, run.task, run=run.run), job.transaction_id)
        return await self._fail(job, run, reason=reporter.clean(end.reason), final=end.final, cause=end.cause)

    async def _publish(self, job: Job, assigned: AssignedRun) -> Job:
        """Move the committed files to their places, also those of a run of another worker."""
        run = assigned.run
        try:
            await self._workspaces.publish(run, job.tasks[run.task].outputs, client=job.submission.client)
        except PublishedByAnother as refused:
            return await self._fail(job, run, reason=str(refused), final=True)
        except (OSError, PathEscape) as fault:
            why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault) or type(fault).__name__
            return await self._fail(
                job, run, reason=f"the files of the step could not be moved to their places: {why}", final=False
            )
        return await self._complete(job, assigned, None)

    async def _complete(self, job: Job, assigned: AssignedRun, result: Result | None) -> Job:
        run, workers = assigned.run, await assigned.ended(assigned.run, job)
        return await self.report(
            Job.complete_task.on(run.job, run.task, run=run.run, result=result, workers=workers), job.transaction_id
        )

    async def _fail(self, job: Job, run: QueuedRun, *, reason: str, final: bool, cause: str = "") -> Job:
        retries = await _until_available(lambda: self.retries(job.submission.client))
        return await self.report(
            Job.fail_task.on(
                run.job,
                run.task,
                run=run.run,
                error=reason[:_LONGEST_ERROR] or "The step failed.",
                retries=retries,
                final=final,
                cause=cause,
            ),
            job.transaction_id,
        )

    def _further_answers(self, order: StepOrder, run: QueuedRun) -> Mapping[str, Answer]:
        """Return the answers to the questions that only the product's own workflows may ask: they open a destination, or read a
        text that a client has sent."""
        if order.workflow == CAPTIONS:
            return {TEXT: lambda _: self._captions.text(str(order.parameters.get("sent")))}
        if order.workflow != PUBLICATION_UPLOAD:
            return NO_ANSWERS
        return self._uploads.answers(UUID(str(order.parameters["publication"])), run)

    async def _find_protection(self, client: str, content_id: str) -> Protection | None:
        return await _until_available(lambda: self._protection(client, content_id))

    async def _find_start(self, event: str) -> str | None:
        return await _until_available(lambda: self._starts(event))

    async def _parameters(self, job: Job) -> Mapping[str, Any]:
        """Return the parameters with their secrets."""
        sealed = job.submission.sealed_parameters
        if sealed is None:
            return job.submission.parameters
        opened = await _until_available(lambda: self._vault.read(sealed.reference, owner=job.id))
        if opened is None:
            raise DecryptionFailed(f"the secret {sealed.reference}")
        parameters: Mapping[str, Any] = from_json(opened)
        return parameters


async def _until_available(ask: Callable[[], Awaitable[T]]) -> T:
    """Repeat the request while the database is away, or other commands change the job at the same time."""
    while True:
        try:
            return await ask()
        except Fenced:
            raise
        except (Unavailable, Conflict):
            await asyncio.sleep(_AGAIN)


def _outcome(job: Job) -> str:
    return "broken" if job.state is JobState.BROKEN else "failed" if job.failed else "completed"


def _sent_text(job: Job) -> str | None:
    """Return the id of the text that a client has sent with the job; None if there is none."""
    sent = job.submission.parameters.get("sent") if job.submission.workflow == CAPTIONS else None
    return sent if isinstance(sent, str) else None


def _order(job: Job, task: Task, run: QueuedRun, parameters: Mapping[str, Any]) -> StepOrder:
    done = {
        item.plan.name: item.result.metadata for item in job.tasks.values() if item.result and item.state is TaskState.COMPLETED
    }
    return StepOrder(
        job=run.job,
        task=run.task,
        run=run.run,
        workflow=job.submission.workflow,
        step=task.plan.name,
        client=job.submission.client,
        content_id=job.submission.content_id,
        parameters=dict(parameters),
        results=done,
        previous_run=run.run - 1 if run.run > 1 else None,
    )
