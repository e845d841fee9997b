"""Taking jobs in: document 3, POST /job and POST /jobs/<id>/rerun; decisions.md, "Job engine".

What the log keeps of a request is masked. Where that takes something away, the whole is sealed before anything keeps it, and goes
into the vault with the append that takes the job in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json, to_json

from api.engine.callbacks import Callbacks
from api.engine.wire import JobBody
from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from domain.job.aggregate import Job
from domain.job.commands import AcceptJob, BreakJob
from domain.job.masking import masked, masked_headers
from domain.job.values import Gate, Submission
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.sealed import Sealed, SecretRef
from domain.webhook.callback import CallbackUrl, taken_apart
from projections.job.numbers import JobNumbers
from projections.log.ledger import Plan
from projections.log.streams import Streams
from projections.vault.vault import Vault
from workers.ports import CheckedJob, Workflows

_MOST_HEADERS: Final = 64
_LONGEST_HEADER: Final = 1000


class JobSecrets:
    """What of one job must be kept from view, sealed for the append that brings it."""

    def __init__(self, vault: Vault, job: int) -> None:
        self._vault = vault
        self._owner = Job.stream(job)
        self.sealed: list[Sealed] = []

    def keep(self, secret: str) -> SecretRef:
        self.sealed.append(self._vault.seal(secret, owner=self._owner))
        return self.sealed[-1].ref

    def gate(self, address: CallbackUrl | None) -> Gate | None:
        if address is None:
            return None
        return Gate(url=address.shown, sealed_url=self.keep(address.whole) if address.hides else None)

    def submission(self, client: str, checked: CheckedJob) -> Submission:
        """Without its callbacks."""
        shown = masked(checked.parameters)
        return Submission(
            client=client,
            workflow=checked.workflow,
            content_id=checked.content_id,
            parameters=shown,
            tasks=checked.tasks,
            sealed_parameters=None if shown == checked.parameters else self.keep(to_json(checked.parameters).decode()),
        )


class Submissions:
    """Every new job comes through here."""

    def __init__(
        self, bus: CommandBus, streams: Streams, *, numbers: JobNumbers, workflows: Workflows, vault: Vault, callbacks: Callbacks
    ) -> None:
        self._bus = bus
        self._numbers = numbers
        self._workflows = workflows
        self._vault = vault
        self._callbacks = callbacks
        self._reruns = Reruns(streams, workflows=workflows, vault=vault)

    async def submit(self, call: Call, body: JobBody) -> Answer:
        client, asked = call.caller.name, body.job
        check_client(call, body.client)
        checked = self._workflows.checked_job(asked.workflow, body.parameters)
        gate = address(asked.sempahore_url, field="job.sempahore_url")
        named = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(checked.callback_urls)]
        number = await self._numbers.draw()
        secrets = JobSecrets(self._vault, number)
        submission = secrets.submission(client, checked)
        accept = AcceptJob(
            number,
            submission,
            asked.priority,
            run_at=asked.run_at,
            gate=secrets.gate(gate),
            headers=recorded_headers(call),
            transaction_id=call.transaction_id,
            sealed=tuple(secrets.sealed),
        )

        async def plan() -> Plan[Job]:
            webhooks, companions = await self._callbacks.of(client, named, checked.content_id)
            return Plan(_told_to(accept, webhooks), companions)

        return await self._bus.send(call, plan, _accepted(number))

    async def rerun(self, call: Call, old_number: int) -> Answer:
        number = await self._numbers.draw()
        headers, transaction_id = recorded_headers(call), call.transaction_id
        plan = partial(self._reruns.plan, old_number, number=number, headers=headers, transaction_id=transaction_id)
        return await self._bus.send(call, plan, _accepted(number))


class Reruns:
    """What is to be done to run a job again, whoever asks for it."""

    def __init__(self, streams: Streams, *, workflows: Workflows, vault: Vault) -> None:
        self._streams = streams
        self._workflows = workflows
        self._vault = vault

    async def plan(self, old_number: int, *, number: int, headers: Mapping[str, str], transaction_id: str) -> Plan[Job]:
        """The job is broken off and begins anew under another number, at once: the time and the gate that it had are dropped."""
        old = await self._streams.load(Job.stream(old_number))
        if not isinstance(old, Job):
            raise NotFound(Job.KIND, str(old_number))
        checked = self._workflows.checked_job(old.submission.workflow, await self._whole(old.submission))
        secrets = JobSecrets(self._vault, number)
        submission = secrets.submission(old.submission.client, checked)
        accept = AcceptJob(
            number,
            submission,
            old.priority,
            rerun_of=old_number,
            headers=headers,
            transaction_id=transaction_id,
            sealed=tuple(secrets.sealed),
        )
        return Plan(BreakJob(old_number, rerun_as=number), (_told_to(accept, old.submission.callbacks),))

    async def _whole(self, submission: Submission) -> Any:
        if submission.sealed_parameters is None:
            return submission.parameters
        opened = await self._vault.opened(submission.sealed_parameters.reference)
        if opened is None:
            raise Refused("the parameters of the job are not kept any more")
        return from_json(opened)


def check_client(call: Call, named: str | None) -> None:
    """A body may say once more who sends it."""
    if named not in (None, call.caller.name):
        raise Malformed.at("client", "must be the client of the header")


def address(url: str | None, *, field: str) -> CallbackUrl | None:
    """Of a gate; an empty text is none."""
    return taken_apart(url, field=field) if url else None


def recorded_headers(call: Call) -> dict[str, str]:
    """Those of the request as its job keeps them, without credentials."""
    sent = list(call.headers.items())[:_MOST_HEADERS]
    return masked_headers({name.decode("latin-1"): value.decode("latin-1")[:_LONGEST_HEADER] for name, value in sent})


def _told_to(accept: AcceptJob, callbacks: tuple[UUID, ...]) -> AcceptJob:
    if not callbacks:
        return accept
    return replace(accept, submission=accept.submission.model_copy(update={"callbacks": callbacks}))


def _accepted(number: int) -> Callable[[Job], Awaitable[Answer]]:
    async def show(job: Job) -> Answer:
        return Answer(200, {"id": number, "result": "accepted"})

    return show
