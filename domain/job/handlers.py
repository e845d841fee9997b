"""Use cases of jobs: submit, change and rerun.

The event log stores a masked request. What masking removes is encrypted, and stored in the vault by the append that accepts the
job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json, to_json

from domain.job.aggregate import Job
from domain.job.callbacks import JobCallbacks
from domain.job.ports import CheckedJob, JobNotes, JobNumbers, JobOwners, LoadAggregate, Workflows
from domain.job.values import DEFAULT_PRIORITY, JobState, Semaphore, Submission
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret, SecretRef
from domain.kernel.errors import NotFound, Refused
from domain.kernel.masking import masked, masked_headers
from domain.kernel.named_callback import NamedCallback
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, Vault
from domain.webhook.callback import CallbackUrl, parse_callback_url
from domain.webhook.commands import NameCallback


class JobSecrets:
    """Encrypts the secrets of one job. The command that stores the job passes `encrypted` to the vault."""

    def __init__(self, vault: Vault, job: int) -> None:
        self._vault = vault
        self._owner = Job.stream(job)
        self.encrypted: list[EncryptedSecret] = []

    def semaphore(self, url: str, *, shown: str) -> Semaphore:
        """Return a semaphore. `shown` is the URL without user info and query."""
        return Semaphore(url=shown, sealed_url=None if shown == url else self._encrypt(url))

    def callback(self, key: UUID, url: str, *, shown: str) -> NamedCallback:
        """Return a callback. `shown` is the URL without user info and query."""
        return NamedCallback(id=key, url=shown, sealed_url=None if shown == url else self._encrypt(url))

    def submission(self, client: str, checked: CheckedJob, *, owner: str | None = None) -> Submission:
        """Return the part of a request that the event log stores, without its callbacks."""
        shown = masked(checked.parameters)
        return Submission(
            client=client,
            workflow=checked.workflow,
            content_id=checked.content_id,
            parameters=shown,
            tasks=checked.tasks,
            owner=owner,
            sealed_parameters=None if shown == checked.parameters else self._encrypt(to_json(checked.parameters).decode()),
        )

    def _encrypt(self, secret: str) -> SecretRef:
        self.encrypted.append(self._vault.encrypt(secret, owner=self._owner))
        return self.encrypted[-1].ref


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job as a client submits it: with secrets, and not yet checked.

    The job does not start before `run_at`. `semaphore_url` must answer 2xx or 3xx before the job is queued; None or an empty text
    means no semaphore. `headers` are those of the HTTP request, for the job's log; they are masked before they are stored. `owner`
    is the stream of the aggregate that the job works for, whose command the submitter adds to the plan; with None, `JobOwners`
    finds it. `flow_id` is the flow whose callbacks are notified of the job, for an append that also makes the Event of the content;
    None stands for the flow of the Event.
    """

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
    """A job that is checked and has a number. `commands` accept it in the append of the submitter. They are made anew for each
    attempt of a plan, and the last one accepts the job."""

    number: int
    commands: Callable[[], Awaitable[Sequence[Command[Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanges:
    """Changes of a job. None leaves a field as it is; `remove_semaphore` removes the present one. `state` is QUEUED to resume,
    BROKEN or PAUSED."""

    priority: int | None = None
    run_at: datetime | None = None
    state: JobState | None = None
    semaphore: CallbackUrl | None = None
    remove_semaphore: bool = False


class JobHandlers:
    """Makes and changes jobs on behalf of clients, for the API, the command line and workers."""

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
        """Submit a job. When this returns, the job is queued. Callbacks that do not exist are made in the same append."""
        prepared = await self.prepare_job(job, transaction_id=invocation.cause.correlation_id)

        async def plan() -> Plan:
            return Plan(await prepared.commands())

        return await self._noted(prepared.number, await self._executor.execute(plan, invocation=invocation))

    async def _noted(self, number: int, outcome: Outcome[Job]) -> Outcome[Job]:
        """Write the owner's notes to the log of the new job, and return the outcome."""
        if self._notes is not None:
            await self._notes.note(number, outcome.aggregates)
        return outcome

    async def prepare_job(self, job: NewJob, *, transaction_id: str) -> PreparedJob:
        """Prepare a job that is accepted in one append with its owner. Raises `Malformed` as `submit_job` does."""
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
            accept = Job.accept.on(
                number,
                _with_callbacks(submission, addresses, job_secrets),
                priority=job.priority,
                run_at=job.run_at,
                semaphore=semaphore,
                headers=masked_headers(job.headers),
                transaction_id=transaction_id,
            ).with_secrets(tuple(job_secrets.encrypted))
            of_owner = () if owned is None else self._owners.accepted(checked, number, owner=owned.owner)
            return (*named_callbacks, *of_owner, accept)

        return PreparedJob(number, commands)

    async def update_job(self, number: int, changes: JobChanges, *, invocation: Invocation) -> Outcome[Job]:
        """Apply all changes or none."""
        job_secrets = JobSecrets(self._vault, number)
        given: dict[str, object] = {"priority": changes.priority, "run_at": changes.run_at, "queue_state": changes.state}
        values = {name: value for name, value in given.items() if value is not None}
        if changes.semaphore is not None:
            values["semaphore"] = job_secrets.semaphore(changes.semaphore.whole, shown=changes.semaphore.shown)
        elif changes.remove_semaphore:
            values["semaphore"] = None
        command = Job.update.on(number, values).with_secrets(tuple(job_secrets.encrypted))
        if changes.state is None and changes.run_at is None:
            return await self._executor.execute(command, invocation=invocation)

        async def plan() -> Plan:
            """A job that ended long ago may continue. Its callbacks are notified of that and may have been removed, and its
            owner may have another job by now."""
            job = await self._load(Job.stream(number))
            if not isinstance(job, Job):
                return Plan((command,))
            resumed = self._continues(changes) and job.state is JobState.PAUSED
            return Plan((*await self._named_again(job.submission), *(self._resumed(job) if resumed else ()), command))

        return await self._executor.execute(plan, invocation=invocation)

    async def rerun_job(self, number: int, *, invocation: Invocation, headers: Mapping[str, str] | None = None) -> Outcome[Job]:
        """Cancel the job and submit it again under a new number, to start as soon as possible: its time and its semaphore are
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
            accept = Job.accept.on(
                new_number,
                _with_callbacks(submission, addresses, job_secrets),
                priority=old.priority,
                rerun_of=number,
                headers=masked_headers(headers or {}),
                transaction_id=invocation.cause.correlation_id,
            ).with_secrets(tuple(job_secrets.encrypted))
            owner = submission.owner
            of_owner = () if owner is None else self._owners.accepted(checked, new_number, owner=owner, rerun_of=number)
            return Plan(
                (accept, *of_owner, *await self._named_again(old.submission), Job.break_off.on(number, rerun_as=new_number))
            )

        return await self._noted(new_number, await self._executor.execute(plan, invocation=invocation))

    def _continues(self, changes: JobChanges) -> bool:
        """Return True if a paused job will no longer be paused, because it is resumed or scheduled for later."""
        later = changes.run_at is not None and changes.run_at > self._clock()
        return changes.state is JobState.QUEUED or (later and changes.state is None)

    def _resumed(self, job: Job) -> Sequence[Command[Any]]:
        """Return the commands for the owner of a resumed job."""
        submission = job.submission
        if submission.owner is None:
            return ()
        checked = CheckedJob(submission.workflow, submission.content_id, submission.parameters, (), submission.tasks)
        return self._owners.accepted(checked, job.number, owner=submission.owner, version=job.version + 1)

    async def _parameters(self, number: int, submission: Submission) -> Any:
        """Return the parameters as they were submitted, with secrets."""
        if submission.sealed_parameters is None:
            return submission.parameters
        return from_json(await self._decrypted(number, submission.sealed_parameters))

    async def _addresses(self, number: int, submission: Submission) -> dict[UUID, CallbackUrl]:
        """Return the addresses of the job's callbacks, with secrets."""
        return {
            callback.id: CallbackUrl(
                callback.url, callback.url if callback.sealed_url is None else await self._decrypted(number, callback.sealed_url)
            )
            for callback in submission.callbacks
        }

    async def _named_again(self, submission: Submission) -> Sequence[NameCallback]:
        return await self._callbacks.named(submission.client, {callback.id: callback.url for callback in submission.callbacks})

    async def _decrypted(self, number: int, secret: SecretRef) -> str:
        decrypted = await self._vault.read(secret.reference, owner=Job.stream(number))
        if decrypted is None:
            raise Refused("the parameters of the job are no longer stored")
        return decrypted


def semaphore_address(url: str | None, *, field: str) -> CallbackUrl | None:
    """Parse the address of a semaphore. None and the empty text are no address. Raises `Malformed` at `field`."""
    return parse_callback_url(url, field=field) if url else None


def _with_callbacks(submission: Submission, addresses: Mapping[UUID, CallbackUrl], job_secrets: JobSecrets) -> Submission:
    callbacks = tuple(job_secrets.callback(key, url.whole, shown=url.shown) for key, url in addresses.items())
    return submission.model_copy(update={"callbacks": callbacks})
