"""Use cases of jobs: submit, change and rerun.

The event log stores a masked request. What masking removes is encrypted; the append that accepts the job puts it into the vault.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from domain.job.aggregate import Job
from domain.job.callbacks import JobCallbacks
from domain.job.commands import AcceptJob, BreakJob, UpdateJob
from domain.job.ports import CheckedJob, JobNotes, JobNumbers, JobOwners, LoadAggregate, Workflows
from domain.job.secrets import JobSecrets
from domain.job.values import DEFAULT_PRIORITY, JobState, Submission
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.encryption import SecretRef
from domain.kernel.errors import NotFound, Refused
from domain.kernel.masking import masked_headers
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, Vault
from domain.webhook.callback_url import CallbackUrl, parse_callback_url
from domain.webhook.commands import NameCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What a client submits, as it was sent: with secrets, and not yet checked.

    `run_at`: not before this time. `semaphore_url` must answer 2xx or 3xx before the job is queued; None or an empty text: no
    semaphore. `headers` are those of the HTTP request, for the job's log; they are masked before they are stored. `owner` is the
    stream of the aggregate that the job works for, whose command the submitter adds to the plan; None: `JobOwners` finds it.
    `flow_id` is the flow whose callbacks are told of the job, where the same append makes the Event of the content; None: that of
    the Event."""

    client: str
    workflow: str
    parameters: object = field(repr=False)
    priority: int = DEFAULT_PRIORITY
    run_at: datetime | None = None
    semaphore_url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner: str | None = None
    flow_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job that is checked and has a number. `commands` accept it in the append of whoever submits it: they are made anew for each
    try of a plan, and the last one is `AcceptJob`."""

    number: int
    commands: Callable[[], Awaitable[Sequence[Command[Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanges:
    """None leaves a field as it is; `remove_semaphore` removes the one that is set. `state`: QUEUED to resume, BROKEN, PAUSED."""

    priority: int | None = None
    run_at: datetime | None = None
    state: JobState | None = None
    semaphore: CallbackUrl | None = None
    remove_semaphore: bool = False


class JobHandlers:
    """All ways to make or change a job on behalf of a client, for the API, the command line and workers."""

    def __init__(
        self,
        executor: Executor,
        load: LoadAggregate,
        *,
        numbers: JobNumbers,
        workflows: Workflows,
        vault: Vault,
        callbacks: JobCallbacks,
        owners: JobOwners,
        clock: Clock,
        notes: JobNotes | None = None,
    ) -> None:
        self._executor = executor
        self._load = load
        self._notes = notes
        self._numbers = numbers
        self._workflows = workflows
        self._vault = vault
        self._callbacks = callbacks
        self._owners = owners
        self._clock = clock

    async def submit_job(self, job: NewJob, *, invocation: Invocation) -> Outcome[Job]:
        """The job is in its queue when this returns. Callbacks that do not exist are made in the same append."""
        prepared = await self.prepare_job(job, transaction_id=invocation.cause.correlation_id)

        async def plan() -> Plan:
            return Plan(await prepared.commands())

        return await self._noted(prepared.number, await self._executor.execute(plan, invocation=invocation))

    async def _noted(self, number: int, outcome: Outcome[Job]) -> Outcome[Job]:
        """The outcome, after its new job has got the notes of its owner."""
        if self._notes is not None:
            await self._notes.note(number, outcome.aggregates)
        return outcome

    async def prepare_job(self, job: NewJob, *, transaction_id: str) -> PreparedJob:
        """For a job that is accepted in one append with its owner. Raises `Malformed` as `submit_job` does."""
        checked = self._workflows.checked_job(job.workflow, job.parameters)
        owned = None if job.owner is not None else await self._owners.of(checked, run_at=job.run_at)
        if owned is not None:
            checked = self._workflows.checked_job(job.workflow, owned.parameters)
            job = replace(job, owner=owned.owner, run_at=owned.run_at)
        address = semaphore_address(job.semaphore_url, field="job.sempahore_url")
        named = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(checked.callback_urls)]
        number = await self._numbers.draw()
        job_secrets = JobSecrets(self._vault, number)
        submission = job_secrets.submission(job.client, checked, owner=job.owner)
        semaphore = None if address is None else job_secrets.semaphore(address.whole, shown=address.shown)

        async def commands() -> Sequence[Command[Any]]:
            addresses = await self._callbacks.of(job.client, named, content_id=checked.content_id, flow_id=job.flow_id)
            named_callbacks = await self._callbacks.named(job.client, {key: url.shown for key, url in addresses.items()})
            accept = AcceptJob(
                number,
                _with_callbacks(submission, addresses, job_secrets),
                job.priority,
                run_at=job.run_at,
                semaphore=semaphore,
                headers=masked_headers(job.headers),
                transaction_id=transaction_id,
                sealed=tuple(job_secrets.encrypted),
            )
            of_owner = () if owned is None else self._owners.accepted(checked, number, owner=owned.owner)
            return (*named_callbacks, *of_owner, accept)

        return PreparedJob(number, commands)

    async def update_job(self, number: int, changes: JobChanges, *, invocation: Invocation) -> Outcome[Job]:
        """All changes or none."""
        job_secrets = JobSecrets(self._vault, number)
        given: dict[str, object] = {"priority": changes.priority, "run_at": changes.run_at, "queue_state": changes.state}
        values = {name: value for name, value in given.items() if value is not None}
        if changes.semaphore is not None:
            values["semaphore"] = job_secrets.semaphore(changes.semaphore.whole, shown=changes.semaphore.shown)
        elif changes.remove_semaphore:
            values["semaphore"] = None
        command = UpdateJob(number, values, sealed=tuple(job_secrets.encrypted))
        if changes.state is None and changes.run_at is None:
            return await self._executor.execute(command, invocation=invocation)

        async def plan() -> Plan:
            """A job that ended long ago may go on: its callbacks are told of it, and may have been removed, and its owner may have
            another job by now."""
            job = await self._load(Job.stream(number))
            if not isinstance(job, Job):
                return Plan((command,))
            resumed = self._goes_on(changes) and job.state is JobState.PAUSED
            return Plan((*await self._named_again(job.submission), *(self._resumed(job) if resumed else ()), command))

        return await self._executor.execute(plan, invocation=invocation)

    async def rerun_job(self, number: int, *, invocation: Invocation, headers: Mapping[str, str] | None = None) -> Outcome[Job]:
        """Break the job off and submit it again under a new number, to start as soon as possible: its time and its semaphore are
        dropped. The first aggregate of the outcome is the new job, the last one the old job."""
        new_number = await self._numbers.draw()

        async def plan() -> Plan:
            old = await self._load(Job.stream(number))
            if not isinstance(old, Job):
                raise NotFound(Job.KIND, str(number))
            checked = self._workflows.checked_job(old.submission.workflow, await self._parameters(number, old.submission))
            job_secrets = JobSecrets(self._vault, new_number)
            submission = job_secrets.submission(old.submission.client, checked, owner=old.submission.owner)
            addresses = await self._addresses(number, old.submission)
            accept = AcceptJob(
                new_number,
                _with_callbacks(submission, addresses, job_secrets),
                old.priority,
                rerun_of=number,
                headers=masked_headers(headers or {}),
                transaction_id=invocation.cause.correlation_id,
                sealed=tuple(job_secrets.encrypted),
            )
            owner = submission.owner
            of_owner = () if owner is None else self._owners.accepted(checked, new_number, owner=owner, rerun_of=number)
            return Plan((accept, *of_owner, *await self._named_again(old.submission), BreakJob(number, rerun_as=new_number)))

        return await self._noted(new_number, await self._executor.execute(plan, invocation=invocation))

    def _goes_on(self, changes: JobChanges) -> bool:
        """Whether a paused job is not paused any more: it is resumed, or scheduled for later."""
        later = changes.run_at is not None and changes.run_at > self._clock()
        return changes.state is JobState.QUEUED or (later and changes.state is None)

    def _resumed(self, job: Job) -> Sequence[Command[Any]]:
        """The commands of its owner."""
        of = job.submission
        if of.owner is None:
            return ()
        checked = CheckedJob(of.workflow, of.content_id, of.parameters, (), of.tasks)
        return self._owners.accepted(checked, job.number, owner=of.owner, version=job.version + 1)

    async def _parameters(self, number: int, submission: Submission) -> Any:
        """As they were submitted, with secrets."""
        if submission.sealed_parameters is None:
            return submission.parameters
        return from_json(await self._decrypted(number, submission.sealed_parameters))

    async def _addresses(self, number: int, submission: Submission) -> dict[UUID, CallbackUrl]:
        """The addresses of the job's callbacks, with secrets."""
        return {
            one.id: CallbackUrl(one.url, one.url if one.sealed_url is None else await self._decrypted(number, one.sealed_url))
            for one in submission.callbacks
        }

    async def _named_again(self, submission: Submission) -> Sequence[NameCallback]:
        return await self._callbacks.named(submission.client, {one.id: one.url for one in submission.callbacks})

    async def _decrypted(self, number: int, secret: SecretRef) -> str:
        decrypted = await self._vault.read(secret.reference, owner=Job.stream(number))
        if decrypted is None:
            raise Refused("the parameters of the job are not kept any more")
        return decrypted


def semaphore_address(url: str | None, *, field: str) -> CallbackUrl | None:
    """None and the empty text are no address. Raises `Malformed` at `field`."""
    return parse_callback_url(url, field=field) if url else None


def _with_callbacks(submission: Submission, addresses: Mapping[UUID, CallbackUrl], job_secrets: JobSecrets) -> Submission:
    callbacks = tuple(job_secrets.callback(key, url.whole, shown=url.shown) for key, url in addresses.items())
    return submission.model_copy(update={"callbacks": callbacks})
