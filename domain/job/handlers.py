"""Use cases of jobs: submit, change and rerun, with the webhooks that are notified of a job.

The event log stores a masked request. What masking removes is encrypted; the append that accepts the job puts it into the vault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json

from domain.configuration.flow import callback_urls
from domain.job.aggregate import Job
from domain.job.commands import AcceptJob, BreakJob, UpdateJob
from domain.job.ports import JobNumbers, LoadAggregate, Workflows
from domain.job.secrets import JobSecrets
from domain.job.values import DEFAULT_PRIORITY, JobState, Submission
from domain.kernel.errors import FieldError, Malformed, NotFound, Refused
from domain.kernel.masking import masked_headers
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, Vault
from domain.media_event.ports import EventLookup
from domain.records.kinds.flow import Flow
from domain.records.ports import RecordLookup
from domain.webhook.aggregate import Webhook, callbacks_of
from domain.webhook.callback import MOST_CALLBACKS, CallbackUrl, callback_key, parse_callback_url
from domain.webhook.commands import EnsureCallback

_FLOW_FIELD: Final = "callbackUrls"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What a client submits, as it was sent: with secrets, and not yet checked.

    `run_at`: not before this time. `semaphore_url` must answer 2xx or 3xx before the job is queued; None or an empty text: no
    semaphore. `headers` are those of the HTTP request, for the job's log; they are masked before they are stored."""

    client: str
    workflow: str
    parameters: object = field(repr=False)
    priority: int = DEFAULT_PRIORITY
    run_at: datetime | None = None
    semaphore_url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


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
    ) -> None:
        self._executor = executor
        self._load = load
        self._numbers = numbers
        self._workflows = workflows
        self._vault = vault
        self._callbacks = callbacks

    async def submit_job(self, job: NewJob, *, invocation: Invocation) -> Outcome[Job]:
        """The job is in its queue when this returns. Webhooks of its callbacks that do not exist are made in the same append."""
        checked = self._workflows.checked_job(job.workflow, job.parameters)
        address = semaphore_address(job.semaphore_url, field="job.sempahore_url")
        named = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(checked.callback_urls)]
        number = await self._numbers.draw()
        job_secrets = JobSecrets(self._vault, number)
        submission = job_secrets.submission(job.client, checked)
        semaphore = None if address is None else job_secrets.semaphore(address.whole, shown=address.shown)

        async def plan() -> Plan:
            webhooks, commands = await self._callbacks.of(job.client, named, content_id=checked.content_id)
            accept = AcceptJob(
                number,
                _with_callbacks(submission, webhooks),
                job.priority,
                run_at=job.run_at,
                semaphore=semaphore,
                headers=masked_headers(job.headers),
                transaction_id=invocation.cause.correlation_id,
                sealed=tuple(job_secrets.encrypted),
            )
            return Plan((*commands, accept))

        return await self._executor.execute(plan, invocation=invocation)

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
        return await self._executor.execute(command, invocation=invocation)

    async def rerun_job(self, number: int, *, invocation: Invocation, headers: Mapping[str, str] | None = None) -> Outcome[Job]:
        """Break the job off and submit it again under a new number, to start as soon as possible: its time and its semaphore are
        dropped. The first aggregate of the outcome is the new job, the last one the old job."""
        new_number = await self._numbers.draw()

        async def plan() -> Plan:
            old = await self._load(Job.stream(number))
            if not isinstance(old, Job):
                raise NotFound(Job.KIND, str(number))
            checked = self._workflows.checked_job(old.submission.workflow, await self._parameters(old.submission))
            job_secrets = JobSecrets(self._vault, new_number)
            submission = job_secrets.submission(old.submission.client, checked)
            accept = AcceptJob(
                new_number,
                _with_callbacks(submission, old.submission.callbacks),
                old.priority,
                rerun_of=number,
                headers=masked_headers(headers or {}),
                transaction_id=invocation.cause.correlation_id,
                sealed=tuple(job_secrets.encrypted),
            )
            return Plan((accept, BreakJob(number, rerun_as=new_number)))

        return await self._executor.execute(plan, invocation=invocation)

    async def _parameters(self, submission: Submission) -> Any:
        """As they were submitted, with secrets."""
        if submission.sealed_parameters is None:
            return submission.parameters
        decrypted = await self._vault.read(submission.sealed_parameters.reference)
        if decrypted is None:
            raise Refused("the parameters of the job are not kept any more")
        return from_json(decrypted)


class JobCallbacks:
    """Finds the webhooks that are notified of a new job: for the URLs in its parameters and in the flow of its Event.

    `new_signing_secret` draws the secret of a webhook that does not exist yet."""

    def __init__(self, vault: Vault, events: EventLookup, records: RecordLookup, *, new_signing_secret: Callable[[], str]) -> None:
        self._vault = vault
        self._events = events
        self._records = records
        self._new_signing_secret = new_signing_secret

    async def of(
        self, client: str, urls: Sequence[tuple[str, str]], *, content_id: str
    ) -> tuple[tuple[UUID, ...], Sequence[EnsureCallback]]:
        """The webhooks, and the commands that make those that do not exist.

        `urls` are those of the parameters, each after the path of its field. Raises `Malformed` with every one that is invalid."""
        callbacks = self._of_parameters(client, urls)
        for url in await self._of_flow(content_id):
            if len(callbacks) < MOST_CALLBACKS:
                callbacks.setdefault(self._key(client, url), url)
        existing = {row.id for row in await self._records.those(Webhook.KIND, callbacks)} if callbacks else set()
        missing = [key for key in callbacks if str(key) not in existing]
        return tuple(callbacks), [self._command(key, client, callbacks[key]) for key in missing]

    def _of_parameters(self, client: str, urls: Sequence[tuple[str, str]]) -> dict[UUID, CallbackUrl]:
        callbacks: dict[UUID, CallbackUrl] = {}
        errors: list[FieldError] = []
        for path, text in urls:
            try:
                url = parse_callback_url(text, field=path)
            except Malformed as refusal:
                errors.extend(refusal.errors)
                continue
            callbacks[self._key(client, url)] = url
            if len(callbacks) > MOST_CALLBACKS:
                errors.append(FieldError(path, f"is one too many: a job may have {MOST_CALLBACKS} callbacks"))
                break
        if errors:
            raise Malformed(*errors)
        return callbacks

    async def _of_flow(self, content_id: str) -> list[CallbackUrl]:
        """An invalid URL of the flow is left out: whoever submits the job cannot correct the flow."""
        try:
            event = await self._events.by_id(UUID(content_id))
        except ValueError:
            return []
        if event is None or event.details.flow_id is None:
            return []
        flow = await self._records.find(Flow.KIND, event.details.flow_id)
        urls: list[CallbackUrl] = []
        for text in callback_urls(flow.details.configuration_json) if flow is not None else ():
            with suppress(Malformed):
                urls.append(parse_callback_url(text, field=_FLOW_FIELD))
        return urls

    def _key(self, client: str, url: CallbackUrl) -> UUID:
        mark = self._vault.encrypt(url.whole, owner=callbacks_of(client)).fingerprint if url.has_secret_part else ""
        return callback_key(client=client, url=url.shown, mark=mark)

    def _command(self, key: UUID, client: str, url: CallbackUrl) -> EnsureCallback:
        owner = Webhook.stream(key)
        secret = self._vault.encrypt(self._new_signing_secret(), owner=owner)
        whole = self._vault.encrypt(url.whole, owner=owner) if url.has_secret_part else None
        return EnsureCallback(key, client, url.shown, secret, whole)


def semaphore_address(url: str | None, *, field: str) -> CallbackUrl | None:
    """None and the empty text are no address. Raises `Malformed` at `field`."""
    return parse_callback_url(url, field=field) if url else None


def _with_callbacks(submission: Submission, webhooks: Sequence[UUID]) -> Submission:
    return submission.model_copy(update={"callbacks": tuple(webhooks)}) if webhooks else submission
