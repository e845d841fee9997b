"""Carries out one run of a task, from its start to its end. Issue 7, "Runner"; ADR 0021.

Every word of it goes to the job as a command that names the run: when that is not the present one any more, nothing is written and
whatever the step made is thrown away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from pydantic_core import from_json

from domain.job.aggregate import Job, Retries
from domain.job.commands import CommitOutputs, CompleteTask, FailTask, InterruptTask, JobCommand, StartTask
from domain.job.masking import secret_texts
from domain.job.task import Task
from domain.job.values import Fenced, Result, TaskState
from domain.kernel.cause import Cause
from domain.kernel.errors import Conflict, Unavailable
from domain.kernel.sealed import Unsealable
from projections.job.settings import EngineSettingsQueries
from projections.log.ledger import Ledger
from projections.log.streams import Streams
from projections.queue.claims import Claimed, Run
from projections.vault.vault import Vault
from workers.jobs.chronicle import Chronicle, Voice
from workers.jobs.hosts import Hosts
from workers.jobs.orders import Failed, StepOrder
from workers.jobs.places import Outside
from workers.jobs.workspaces import Workspaces

T = TypeVar("T")
_AGAIN: Final = 0.5
_LONGEST_ERROR: Final = 2_000

_log = logging.getLogger(__name__)


class Conductor:
    """`worker` is how this process is named in the log."""

    def __init__(
        self,
        ledger: Ledger,
        hosts: Hosts,
        *,
        streams: Streams,
        workspaces: Workspaces,
        chronicle: Chronicle,
        vault: Vault,
        settings: EngineSettingsQueries,
        worker: str,
    ) -> None:
        self._ledger = ledger
        self._hosts = hosts
        self._streams = streams
        self._workspaces = workspaces
        self._chronicle = chronicle
        self._vault = vault
        self._settings = settings
        self._worker = worker
        self._stepping: set[Run] = set()

    def is_stepping(self, run: Run) -> bool:
        """Whether its step runs: before and after that, the job itself says whether the run still counts."""
        return run in self._stepping

    async def retries(self, client: str) -> Retries:
        """As the client's settings are at this moment."""
        known = (await self._settings.of([client]))[client]
        return Retries(known.retry_limit, timedelta(seconds=known.retry_delay))

    async def conduct(self, claimed: Claimed) -> None:
        """Raises `Fenced` when the run is not the job's any more. Cancelled, it stops the step at once and writes nothing."""
        run = claimed.run
        if claimed.publishing:
            job = await self._load(run)
        else:
            job = await self.tell(StartTask(run.job, run.task, run.run, self._worker), claimed.transaction_id)
            job = await self._step(job, run)
        task = job.tasks[run.task]
        if task.state is TaskState.PUBLISHING and task.run == run.run:
            job = await self._publish(job, run)
        if job.ended:
            await self._workspaces.remove([run.job])
        elif job.tasks[run.task].state is TaskState.COMPLETED:
            await self._workspaces.discard_runs(run)
        else:
            await self._workspaces.discard(run._replace(run=run.run - 1))

    async def tell(self, command: JobCommand, transaction_id: str) -> Job:
        """Until the log takes it; whoever holds the run's lease ends that when it is lost."""
        cause = Cause.by("system", correlation_id=transaction_id)
        return await _surely(lambda: self._ledger.execute(command, cause=cause))

    async def _load(self, run: Run) -> Job:
        job = await _surely(lambda: self._streams.load(Job.stream(run.job)))
        assert isinstance(job, Job), "a task is claimed of a job that is in the log"
        return job

    async def _step(self, job: Job, run: Run) -> Job:
        task = job.tasks[run.task]
        try:
            parameters = await self._parameters(job)
        except Unsealable:
            return await self._failed(job, run, reason="the parameters cannot be opened with the present master key", final=True)
        voice = Voice(
            self._chronicle, run, secrets=secret_texts(dict(parameters)) if job.submission.sealed_parameters else frozenset()
        )
        self._stepping.add(run)
        try:
            end = await self._hosts.run(_order(job, task, run, parameters), voice)
        finally:
            self._stepping.discard(run)
        await voice.said()
        if isinstance(end, Failed):
            return await self._ended_badly(job, run, end, voice)
        result = Result.model_validate_json(voice.clean(end.result.model_dump_json()))
        if not end.outputs:
            return await self.tell(CompleteTask(run.job, run.task, run.run, result), job.transaction_id)
        return await self.tell(CommitOutputs(run.job, run.task, run.run, end.outputs, result), job.transaction_id)

    async def _ended_badly(self, job: Job, run: Run, end: Failed, voice: Voice) -> Job:
        if end.interrupted:
            return await self.tell(InterruptTask(run.job, run.task, run.run), job.transaction_id)
        return await self._failed(job, run, reason=voice.clean(end.reason), final=end.final)

    async def _publish(self, job: Job, run: Run) -> Job:
        """What was decided is carried out, whoever decided it."""
        try:
            await self._workspaces.publish(run, job.tasks[run.task].outputs)
        except (OSError, Outside) as fault:
            why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault) or type(fault).__name__
            return await self._failed(job, run, reason=f"what it made could not be put in its place: {why}", final=False)
        return await self.tell(CompleteTask(run.job, run.task, run.run), job.transaction_id)

    async def _failed(self, job: Job, run: Run, *, reason: str, final: bool) -> Job:
        retries = await _surely(lambda: self.retries(job.submission.client))
        return await self.tell(
            FailTask(run.job, run.task, run.run, reason[:_LONGEST_ERROR] or "it failed", retries, final), job.transaction_id
        )

    async def _parameters(self, job: Job) -> Mapping[str, Any]:
        """All of them, with what must not be shown."""
        sealed = job.submission.sealed_parameters
        if sealed is None:
            return job.submission.parameters
        opened = await _surely(lambda: self._vault.opened(sealed.reference))
        if opened is None:
            raise Unsealable(str(sealed.reference))
        found: Mapping[str, Any] = from_json(opened)
        return found


async def _surely(ask: Callable[[], Awaitable[T]]) -> T:
    """The database may be away for a while, and others may write to the job all the time."""
    while True:
        try:
            return await ask()
        except Fenced:
            raise
        except (Unavailable, Conflict):
            await asyncio.sleep(_AGAIN)


def _order(job: Job, task: Task, run: Run, parameters: Mapping[str, Any]) -> StepOrder:
    done = {one.plan.name: one.result.metadata for one in job.tasks.values() if one.result and one.state is TaskState.COMPLETED}
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
