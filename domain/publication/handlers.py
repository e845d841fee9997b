"""Use cases of publications: create several at once, change, show, delete, and follow the job.

A publication and the job that publishes it are one append. Secrets are in the vault; the job gets ids only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup
from domain.event.values import Mp4State
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob, OwnedJob
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, Refused, Unavailable
from domain.kernel.ids import new_id
from domain.kernel.media_files import is_published_path
from domain.kernel.parts import delete_in_parts
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.ports import PublicationLookup, PublishedContents, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.stored_texts import PublicationTexts
from domain.publication.texts import SentText
from domain.publication.values import (
    MOST_AT_ONCE,
    PublicationKind,
    PublicationState,
    transaction_key,
)
from domain.record.kinds.destination import Destination, DestinationDetails
from domain.record.ports import RecordLookup, RecordRow

FIELD: Final = "publications"
INACTIVE: Final = "the destination is not active"


class RequestedPublication(Protocol):
    """A publication in a request. `text` is the publicationJson."""

    @property
    def text(self) -> str: ...


W = TypeVar("W", bound=RequestedPublication)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicationPorts:
    """The ports that both kinds of publications need."""

    executor: Executor
    publications: PublicationLookup
    records: RecordLookup
    events: EventLookup
    texts: PublicationTexts
    contents: PublishedContents


class SeveralPublications:
    """Base of the handlers of both kinds of publications."""

    def __init__(self, ports: PublicationPorts) -> None:
        self._executor = ports.executor
        self._publications = ports.publications
        self._records = ports.records
        self._events = ports.events
        self._texts = ports.texts
        self._contents = ports.contents

    def _parsed(self, wanted: Sequence[RequestedPublication]) -> list[SentText]:
        """Return the parsed texts. Raises `Malformed`, also for an empty list and for too many entries."""
        if not 0 < len(wanted) <= MOST_AT_ONCE:
            raise Malformed.at(FIELD, f"must have 1 to {MOST_AT_ONCE} entries")
        return [
            self._texts.parsed(publication.text, field=f"{FIELD}[{index}].publicationJson")
            for index, publication in enumerate(wanted)
        ]

    async def _created(
        self,
        wanted: Sequence[W],
        sent: Sequence[SentText],
        *,
        scheduling: Callable[[UUID, W, SentText], Awaitable[list[Command[Any]]]],
        invocation: Invocation,
        result: Mapping[str, Any] | None = None,
    ) -> Outcome[Publication]:
        """Create all publications or none. `scheduling` returns the commands for one, its own last. `places` in the result are
        the indexes of the publications among the aggregates."""
        keys = [new_id() for _ in wanted]

        async def plan() -> Plan:
            commands: list[Command[Any]] = []
            places: list[int] = []
            for key, publication, text in zip(keys, wanted, sent, strict=True):
                commands += await scheduling(key, publication, text)
                places.append(len(commands) - 1)
            return Plan(_each_once(commands, places), {"places": places, **(result or {})})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _shown(
        self, row: PublicationRow, *, fault: str | None, published: bool, invocation: Invocation
    ) -> Outcome[Publication]:
        """Make the target show or hide the content, unless there is a fault already. The action of the target is recorded at any
        version."""
        invocation.check_version(row.version)
        if fault is None:
            call = TargetCall.PUBLISH if published else TargetCall.UNPUBLISH
            answer = await self._contents.ask(call, row)
            fault = answer.fault if answer.able else f"A destination of the target {row.target.name} cannot {call.value}."

        async def plan() -> Plan:
            return Plan(() if fault is not None else (Publication.show.on(row.id, published),), {"fault": fault})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _destination(self, key: UUID) -> RecordRow[DestinationDetails]:
        row = await self._records.find(Destination, key)
        if row is None:
            raise NotFound(Destination.KIND, str(key))
        return row


def _each_once(commands: Sequence[Command[Any]], places: list[int]) -> list[Command[Any]]:
    """Remove repeated commands for callbacks that several publications name, and move `places` accordingly."""
    unique: list[Command[Any]] = []
    seen: set[tuple[type[Any], object]] = set()
    moved: dict[int, int] = {}
    for index, command in enumerate(commands):
        name = (command.kind(), command.key)
        if name not in seen:
            moved[index] = len(unique)
            unique.append(command)
            seen.add(name)
    places[:] = [moved[place] for place in places]
    return unique


WORKFLOW: Final = "publication_upload"
MOST_DELETED: Final = 500
"""The number of publications that one append withdraws."""
_FAULTS: Final = {
    "destination": PublicationState.FailedDestination,
    "media": PublicationState.FailedMediaAsset,
    "publication": PublicationState.FailedPublication,
}
_AT_TARGETS: Final = (
    (PublicationKind.VOD, PublicationState.Completed),
    (PublicationKind.LIVE, PublicationState.InProgress),
    (PublicationKind.LIVE, PublicationState.Completed),
)
"""The kinds and states of publications that have something at their targets."""
_CONTENT_ID: Final = "must be the name of a folder, without slashes"
_LIVE_ONLY: Final = "the target takes live streams only"


@dataclass(frozen=True, slots=True)
class NewPublication:
    """A client's request for a publication. `text` is the publicationJson. Without `client` the publication belongs to the
    caller."""

    content_id: str
    destination_id: UUID
    text: str
    client: str | None = None


class PublicationHandlers(SeveralPublications):
    """Makes and changes publications on behalf of clients."""

    def __init__(self, ports: PublicationPorts, *, jobs: JobHandlers) -> None:
        super().__init__(ports)
        self._jobs = jobs

    async def publish_event(
        self, event_id: UUID, wanted: Sequence[NewPublication], *, invocation: Invocation
    ) -> Outcome[Publication]:
        """Publish the film of an Event, which must have one."""
        sent = self._parsed(wanted)
        event = await self._events.by_id(event_id)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        if event.details.mp4_state is not Mp4State.AVAILABLE:
            raise Refused("the Event has no MP4 file that is available")
        return await self._scheduled(
            [replace(publication, content_id=str(event_id)) for publication in wanted], sent, invocation=invocation
        )

    async def create(self, wanted: Sequence[NewPublication], *, invocation: Invocation) -> Outcome[Publication]:
        """Create all publications or none, each with its own job. Publications to a destination that is not active fail at once.
        The outcome has other aggregates too; `places` in the result are the indexes of the publications."""
        sent = self._parsed(wanted)
        for index, publication in enumerate(wanted):
            if not _is_content_id(publication.content_id):
                raise Malformed.at(f"{FIELD}[{index}].contentId", _CONTENT_ID)
        return await self._scheduled(wanted, sent, invocation=invocation)

    async def _scheduled(
        self, wanted: Sequence[NewPublication], sent: Sequence[SentText], *, invocation: Invocation
    ) -> Outcome[Publication]:
        scheduling = partial(self._scheduling, transaction=transaction_key(invocation.cause.correlation_id), invocation=invocation)
        return await self._created(wanted, sent, scheduling=scheduling, invocation=invocation)

    async def _scheduling(
        self, key: UUID, requested: NewPublication, sent: SentText, /, *, transaction: UUID, invocation: Invocation
    ) -> list[Command[Any]]:
        """Return the commands for one publication, its own last."""
        destination = await self._destination(requested.destination_id)
        client = requested.client or invocation.cause.actor
        settled = await self._texts.settle(sent, None, key=key, client=client)
        fault = _fault(destination)
        commands, job = list(settled.named), None
        if fault is None:
            new = NewJob(
                client=client,
                workflow=WORKFLOW,
                parameters={"content_id": requested.content_id, "publication": str(key)},
                owner=Publication.stream(key),
            )
            prepared = await self._jobs.prepare_job(new, transaction_id=invocation.cause.correlation_id)
            commands, job = [*commands, *await prepared.commands()], prepared.number
        schedule = Publication.schedule.on(
            key,
            kind=PublicationKind.VOD,
            content_id=requested.content_id,
            destination_id=requested.destination_id,
            target=destination.details.target,
            transaction_id=transaction,
            client=client,
            text=settled.text,
            job=job,
            fault=fault,
        ).with_secrets(settled.sealed)
        return [*commands, schedule]

    async def amend(self, key: UUID, destination_id: UUID, *, text: str, invocation: Invocation) -> Outcome[Publication]:
        """Store another text; a completed publication is changed at its target if possible. If the target refuses the change,
        the publication fails. Raises `Unavailable` if the target cannot be reached; nothing is changed then."""
        sent = self._texts.parsed(text, field="publicationJson")
        row = await self._existing(key, destination_id)
        invocation.check_version(row.version)
        settled = await self._texts.settle(sent, row.text, key=key, client=row.client)
        refusal = None
        if row.state is PublicationState.Completed and settled.text != row.text:
            shown = settled.text.model_copy(update={"secrets": row.text.secrets})  # a new one is not stored yet
            answer = await self._contents.ask(TargetCall.UPDATE, replace(row, text=shown))
            if answer.able and answer.passing:
                raise Unavailable(answer.fault or "the target")
            refusal = answer.fault if answer.able else None
        command = Publication.amend.on(key, settled.text, still=row.text, refusal=refusal).with_secrets(settled.sealed)

        async def plan() -> Plan:
            return Plan((*settled.named, command))

        return await self._executor.execute(plan, invocation=invocation)

    async def show(self, key: UUID, destination_id: UUID, *, published: bool, invocation: Invocation) -> Outcome[Publication]:
        """Make the target show or hide the content. The result has `fault`, which is None on success."""
        row = await self._existing(key, destination_id)
        fault = None if row.state is PublicationState.Completed else "The publication is not completed."
        return await self._shown(row, fault=fault, published=published, invocation=invocation)

    async def show_with_event(self, event_id: UUID, *, published: bool, invocation: Invocation) -> Sequence[str]:
        """Make the targets show or hide all that they have of an Event, as far as they can. Return the faults that stay.

        Raises `Unavailable` after all targets were asked if one of them could not be reached."""
        call = TargetCall.PUBLISH if published else TargetCall.UNPUBLISH
        rows = [
            row
            for kind, state in _AT_TARGETS
            for row in await self._publications.of_content(str(event_id), kind=kind, state=state, limit=MOST_DELETED)
        ]
        answers = [(row, await self._contents.ask(call, row)) for row in rows]
        shown = [Publication.show.on(row.id, published) for row, answer in answers if answer.able and answer.fault is None]

        async def plan() -> Plan:
            return Plan(shown)

        if shown:
            await self._executor.execute(plan, invocation=invocation)
        faults = [(row, answer) for row, answer in answers if answer.able and answer.fault is not None]
        for _, answer in faults:
            if answer.passing:
                raise Unavailable(f"the target of a publication: {answer.fault}")
        return [f"the publication {row.id} did not {call.value} with its Event: {answer.fault}" for row, answer in faults]

    async def delete(self, key: UUID, destination_id: UUID | None, *, hard: bool, invocation: Invocation) -> Outcome[Publication]:
        """Delete a publication and cancel its running upload. With `hard`, its media at the target are removed too: at once, or
        after the upload has ended. If that cannot be done, the publication stays and this raises `Unavailable` or `Refused`. The
        publication is the last aggregate of the outcome."""

        async def plan() -> Plan:
            row = await self._existing(key, destination_id)
            invocation.check_version(row.version)
            if hard and row.running_job is None and row.job is not None:
                await self._remove(row)
            return Plan(withdrawal(row, hard=hard))

        return await self._executor.execute(plan, invocation=invocation)

    async def delete_of_content(self, content_id: str, *, invocation: Invocation) -> Outcome[Publication]:
        """Delete all VOD publications of a content, in several appends. The result has their number."""
        if not _is_content_id(content_id):
            raise Malformed.at("contentId", _CONTENT_ID)
        return await delete_in_parts(
            self._executor,
            partial(self._publications.of_content, content_id, kind=PublicationKind.VOD, limit=MOST_DELETED),
            deletion=partial(withdrawal, hard=False),
            most=MOST_DELETED,
            invocation=invocation,
        )

    async def withdraw_of_destination(self, destination_id: UUID, *, invocation: Invocation) -> int:
        """Withdraw one batch of the publications of a deleted destination. Return their number."""
        rows = await self._publications.of_destination(destination_id, limit=MOST_DELETED)

        async def plan() -> Plan:
            return Plan([command for row in rows for command in withdrawal(row, hard=False)])

        if rows:
            await self._executor.execute(plan, invocation=invocation)
        return len(rows)

    async def clear_target(self, publication: Publication, *, invocation: Invocation) -> None:
        """Remove what a cancelled job may have brought to the target. Raises `Unavailable` if that cannot be done."""
        if publication.target_left:
            await self._remove(PublicationRow.of(publication))
            await self._executor.execute(Publication.clear_target.on(UUID(publication.key)), invocation=invocation)

    async def _remove(self, row: PublicationRow) -> None:
        answer = await self._contents.ask(TargetCall.DELETE, row)
        if not answer.able:
            raise Refused(f"nothing can be removed from a destination of the target {row.target.name}")
        if answer.fault is not None:
            raise Unavailable(f"the target of the publication: {answer.fault}")

    async def _existing(self, key: UUID, destination_id: UUID | None) -> PublicationRow:
        row = await self._publications.find(key, destination_id=destination_id)
        if row is None or row.kind is not PublicationKind.VOD:
            raise NotFound(Publication.KIND, str(key))
        return row


class PublicationJobOwners:
    """The port `domain.job.ports.JobOwners`. A publication names its first job itself, so this adds commands only for later
    ones."""

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        if job.workflow == WORKFLOW:
            raise Malformed.at("job.workflow", "is reserved for publications, which submit it themselves")
        return None

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        name = StreamName.read(owner)
        if name.kind != Publication.KIND or not (rerun_of or version):
            return ()
        return (Publication.resume.on(UUID(name.key), number, job_version=version or 1, rerun_of=rerun_of),)


def command_of(key: str, outcome: JobOutcome) -> Command[Any]:
    """Return the command that passes an outcome of a job to the publication that owns it. The target's description is under
    `details` in the job's metadata; the cause of a failure says what is at fault."""
    publication, job, version = UUID(key), outcome.job, outcome.version
    match outcome.kind:
        case OutcomeKind.COMPLETED:
            details = outcome.metadata.get("details")
            if not isinstance(details, dict) or details.get("isUnavailable") is True:
                return Publication.fail_job.on(
                    publication,
                    job,
                    job_version=version,
                    state=PublicationState.FailedPublication,
                    reason="the target returned no details, or reports that it is not available",
                )
            return Publication.complete.on(publication, job, job_version=version, details=details)
        case OutcomeKind.FAILED | OutcomeKind.BROKEN:
            state = _FAULTS.get(outcome.cause, PublicationState.FailedPublication)
            return Publication.fail_job.on(publication, job, job_version=version, state=state, reason=outcome.reason)
        case OutcomeKind.RESUMED | OutcomeKind.RERUN:
            return Publication.restart.on(publication, job, job_version=version, rerun_of=outcome.rerun_of)


def withdrawal(row: PublicationRow, *, hard: bool) -> list[Command[Any]]:
    withdraw = Publication.withdraw.on(row.id, hard=hard, running_job=row.running_job).as_planned()
    return [withdraw] if row.running_job is None else [Job.end.on(row.running_job), withdraw]


def _fault(destination: RecordRow[DestinationDetails]) -> tuple[PublicationState, str] | None:
    if not destination.details.active:
        return PublicationState.FailedDestination, INACTIVE
    if destination.details.target is Target.CUSTOM:
        return PublicationState.FailedPublication, _LIVE_ONLY
    return None


def _is_content_id(text: str) -> bool:
    return "/" not in text and "\\" not in text and is_published_path(text)
