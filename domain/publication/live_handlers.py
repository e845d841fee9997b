"""Use cases of live publications: create several at once, start, stop, recreate, show and delete.

When a publication is started, the target creates the endpoint of the stream; a worker's session pushes the stream itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from domain.channel.secrets import opened
from domain.destination.custom_stream import NAME, NEEDS_NAME, is_elsewhere
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventRow
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, PreconditionFailed, Refused, Unavailable
from domain.kernel.ports import Invocation, Outcome, Plan
from domain.publication.aggregate import Publication
from domain.publication.commands import (
    ReadPublication,
)
from domain.publication.handlers import FIELD, INACTIVE, PublicationPorts, SeveralPublications
from domain.publication.ports import StreamingServers, TargetAnswer, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.sources import ChannelSources, LiveSource
from domain.publication.texts import SentText
from domain.publication.values import MOST_AT_ONCE, PublicationKind, PublicationState, transaction_key
from domain.record.kinds.destination import Destination, DestinationDetails

_NO_SOURCE: Final = "the Event has no channel, or its channel has no HLS address: there is no stream to publish"
_NOT_ON_AIR: Final = "the Event is not on the air"
_FILES_ONLY: Final = frozenset({Target.S3, Target.SFTP, Target.HTTP, Target.FILESYSTEM})
_NOT_LIVE: Final = "the target takes files only"
_SHOWN: Final = (PublicationState.InProgress, PublicationState.Completed)


@dataclass(frozen=True, slots=True)
class NewStream:
    """A client's request for a live publication. `text` is the publicationJson; without an audio input the first one is used."""

    destination_id: UUID
    text: str
    audio_input_id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestedLive:
    """A publication in a request about several."""

    publication_id: UUID
    destination_id: UUID
    hard: bool = False


class LivePublicationHandlers(SeveralPublications):
    """Makes and changes live publications."""

    def __init__(self, ports: PublicationPorts, *, sources: ChannelSources, servers: StreamingServers) -> None:
        super().__init__(ports)
        self._sources = sources
        self._servers = servers

    # --- creating

    async def create(
        self, event_id: UUID, wanted: Sequence[NewStream], *, start: bool, invocation: Invocation
    ) -> Outcome[Publication]:
        """Create all publications or none. `start` says that each is to be started afterwards, so there must be a stream, now or
        when the Event goes live. The outcome has other aggregates too; `places` in the result are the indexes of the
        publications, and the result also has `start`."""
        sent = self._parsed(wanted)
        source = await self._checked(event_id, wanted)
        if start and not source.urls and not source.expected:
            raise Refused(_NO_SOURCE)
        scheduling = partial(self._scheduling, event_id=event_id, invocation=invocation)
        return await self._created(wanted, sent, scheduling=scheduling, invocation=invocation, result={"start": start})

    async def _checked(self, event_id: UUID, wanted: Sequence[NewStream]) -> LiveSource:
        source = await self._sources.of(await self._event(event_id))
        input_ids = [entry.id for entry in source.audio_inputs]
        for index, entry in enumerate(wanted):
            if input_ids and entry.audio_input_id is not None and entry.audio_input_id not in input_ids:
                names = ", ".join(input_ids[:20])
                raise Malformed.at(f"{FIELD}[{index}].audioInputId", f"is no audio input of the Event; it has {names}")
        return source

    async def _scheduling(
        self, key: UUID, stream: NewStream, sent: SentText, /, *, event_id: UUID, invocation: Invocation
    ) -> list[Command[Any]]:
        """Return the commands for one publication, its own last."""
        destination = await self._destination(stream.destination_id)
        if destination.details.target is Target.CUSTOM:
            _check_stream(destination.details, sent)
        client = invocation.cause.actor
        settled = await self._texts.settle(sent, None, key=key, client=client)
        fault = None
        if not destination.details.active:
            fault = PublicationState.FailedDestination, INACTIVE
        elif destination.details.target in _FILES_ONLY:
            fault = PublicationState.FailedPublication, _NOT_LIVE
        schedule = Publication.schedule.on(
            key,
            kind=PublicationKind.LIVE,
            content_id=str(event_id),
            destination_id=stream.destination_id,
            target=destination.details.target,
            transaction_id=transaction_key(invocation.cause.correlation_id),
            client=client,
            text=settled.text,
            audio_input_id=stream.audio_input_id,
            fault=fault,
        ).with_secrets(settled.sealed)
        return [*settled.named, schedule]

    # --- starting and stopping

    async def start(
        self, event_id: UUID, entry: RequestedLive, *, invocation: Invocation, ahead: bool = True
    ) -> Outcome[Publication]:
        """Start a publication; one that is InProgress continues. If the destination is not active, or the target refuses, the
        publication fails. While the Event is not live the publication stays Scheduled, and starts with the Event; without `ahead`
        it is refused then.

        Raises `Refused` without a stream to publish and for a publication that has ended, `Unavailable` if the target does not
        answer.
        """
        await self._existing(event_id, entry)

        async def plan() -> Plan:
            row = await self._existing(event_id, entry)
            invocation.check_version(row.version)
            return Plan([await self._starting(row, ahead=ahead)])

        return await self._executor.execute(plan, invocation=invocation)

    async def start_new(
        self, event_id: UUID, entry: RequestedLive, *, version: int, invocation: Invocation
    ) -> Outcome[Publication]:
        """Start a publication that has not changed since its creation, which left it at `version`. Any other stays as it is."""
        try:
            return await self.start(event_id, entry, invocation=Invocation(invocation.cause, frozenset({version})))
        except PreconditionFailed:
            return await self._executor.execute(ReadPublication(entry.publication_id), invocation=Invocation(invocation.cause))

    async def _starting(self, row: PublicationRow, *, ahead: bool) -> Command[Publication]:
        if row.state is not PublicationState.Scheduled:
            return Publication.start.on(row.id, None)  # it goes on, or refuses
        destination = await self._records.find(Destination, row.destination_id)
        if destination is None or not destination.details.active:
            return Publication.fail_start.on(row.id, PublicationState.FailedDestination, INACTIVE)
        source = await self._sources.of(await self._event(UUID(row.content_id)))
        if not source.urls:
            if source.expected and ahead:
                return Publication.await_start.on(row.id)
            raise Refused(_NOT_ON_AIR if source.expected else _NO_SOURCE)
        served_by = await self._servers.channel_of(row)
        if served_by is None:
            answer = await self._contents.ask(TargetCall.OPEN, row)
        else:
            answer = await self._servers.start(row, served_by)
        if not answer.able:
            return Publication.fail_start.on(row.id, PublicationState.FailedPublication, "the target takes no live streams")
        if answer.fault is not None:
            if answer.passing:
                raise Unavailable(f"the target of the publication: {answer.fault}")
            return Publication.fail_start.on(row.id, PublicationState.FailedPublication, answer.fault)
        return Publication.start.on(row.id, dict(answer.details or {}), served_by=served_by)

    async def stop(self, event_id: UUID, entry: RequestedLive, *, invocation: Invocation) -> Outcome[Publication]:
        """Stop a publication. One that waits for its Event stops waiting; any other that is not being pushed stays as it is."""
        await self._existing(event_id, entry)
        return await self._executor.execute(Publication.stop.on(entry.publication_id), invocation=invocation)

    async def scheduled(self, event_id: UUID, *, awaited: bool) -> Sequence[RequestedLive]:
        """Return the publications of the Event that wait to be started. `awaited` selects those that a client has started in
        advance."""
        return await self._of_event(event_id, PublicationState.Scheduled, awaited=awaited)

    async def stop_running(self, event_id: UUID, *, reason: str, invocation: Invocation) -> int:
        """Stop one batch of the Event's publications that are being pushed. Return their number."""
        entries = await self._of_event(event_id, PublicationState.InProgress)

        async def plan() -> Plan:
            return Plan([Publication.stop.on(entry.publication_id, reason) for entry in entries])

        if entries:
            await self._executor.execute(plan, invocation=invocation)
        return len(entries)

    async def _of_event(self, event_id: UUID, state: PublicationState, *, awaited: bool = False) -> Sequence[RequestedLive]:
        rows = await self._publications.of_content(
            str(event_id), kind=PublicationKind.LIVE, limit=MOST_AT_ONCE - 1, state=state, awaited=awaited
        )
        return [RequestedLive(row.id, row.destination_id) for row in rows]

    # --- what is at the target

    async def recreate(
        self, event_id: UUID, entry: RequestedLive, *, remove_original: bool, invocation: Invocation
    ) -> Outcome[Publication]:
        """Start a publication over under the same id. With `remove_original`, what was made at the target is removed first.
        Raises `Refused` while it is being pushed, and `Unavailable` if the target cannot be reached; nothing is changed then."""

        async def plan() -> Plan:
            row = await self._existing(event_id, entry)
            invocation.check_version(row.version)
            if row.state is PublicationState.InProgress:
                return Plan([Publication.recreate.on(row.id)])  # which refuses
            closing = await self._closed(row) if row.open else None
            if remove_original:
                await self._remove(row)
            return Plan([Publication.recreate.on(row.id, closing)])

        return await self._executor.execute(plan, invocation=invocation)

    async def show(self, event_id: UUID, entry: RequestedLive, *, published: bool, invocation: Invocation) -> Outcome[Publication]:
        """Make the target show or hide the content. The result has `fault`, which is None on success."""
        row = await self._existing(event_id, entry)
        fault = None if row.state in _SHOWN else "The publication was not started."
        return await self._shown(row, fault=fault, published=published, invocation=invocation)

    async def delete(self, event_id: UUID, entry: RequestedLive, *, invocation: Invocation) -> Outcome[Publication]:
        """Delete a publication and stop its push. A hard deletion removes what is at the target: at once, or after the push has
        ended. If that cannot be done, the publication stays and this raises `Unavailable`."""

        async def plan() -> Plan:
            row = await self._existing(event_id, entry)
            invocation.check_version(row.version)
            if entry.hard and not row.open:
                await self._remove(row)
            return Plan([Publication.withdraw.on(row.id, hard=entry.hard, running_job=None).as_planned()])

        return await self._executor.execute(plan, invocation=invocation)

    async def close_target(self, publication: Publication, *, give_up: bool, invocation: Invocation) -> None:
        """Notify the target that the stream has ended. Raises `Unavailable` if it cannot be reached, unless `give_up` is set."""
        row = PublicationRow.of(publication)
        if row.open and (row.withdrawn or row.state is not PublicationState.InProgress):
            fault = await self._closed(row, give_up=give_up)
            await self._executor.execute(Publication.close_target.on(row.id, fault), invocation=invocation)

    async def server_statistics(self, row: PublicationRow) -> Mapping[str, Any]:
        """Return the statistics of the streaming server. Raises `Unavailable` if the server does not answer."""
        answer = await self._servers.statistics(row)
        if answer.fault is not None:
            raise Unavailable(f"the streaming server of the publication: {answer.fault}")
        return {"server": dict(answer.details or {})}

    async def clear_target(self, publication: Publication, *, invocation: Invocation) -> None:
        """Remove what a deleted publication has left at its target. Raises `Unavailable` if that cannot be done."""
        await self._remove(PublicationRow.of(publication))
        await self._executor.execute(Publication.clear_target.on(UUID(publication.key)), invocation=invocation)

    async def _closed(self, row: PublicationRow, *, give_up: bool = False) -> str:
        """Return the error of closing the target, if it is permanent, else an empty text. A server that pushes is stopped first,
        whatever the target supports."""
        if row.served_by is not None:
            stopped = await self._servers.stop(row)
            if stopped.fault is not None and stopped.passing:
                raise Unavailable(f"the streaming server of the publication: {stopped.fault}")
        answer = await self._contents.ask(TargetCall.CLOSE, row)
        if answer.fault is not None and answer.passing and not give_up:
            raise Unavailable(f"the target of the publication: {answer.fault}")
        return answer.fault or ""

    async def _remove(self, row: PublicationRow) -> None:
        """Remove the stream from its target. A target that cannot remove anything has nothing of a stream."""
        if not row.run:
            return
        answer: TargetAnswer = await self._contents.ask(TargetCall.DELETE, row)
        if answer.able and answer.fault is not None:
            raise Unavailable(f"the target of the publication: {answer.fault}")

    async def _event(self, event_id: UUID) -> EventRow:
        event = await self._events.by_id(event_id)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        return event

    async def _existing(self, event_id: UUID, entry: RequestedLive) -> PublicationRow:
        row = await self._publications.find(entry.publication_id, destination_id=entry.destination_id)
        if row is None or row.kind is not PublicationKind.LIVE or row.content_id != str(event_id):
            raise NotFound(Publication.KIND, str(entry.publication_id))
        return row


def _check_stream(destination: DestinationDetails, sent: SentText) -> None:
    """Check that a publication with its own address has its own key."""
    own, configured = sent.all_options(), opened(destination.configuration_json, {}, members=Destination.MEMBERS)
    if isinstance(configured, dict) and is_elsewhere(configured, own) and not own.get(NAME):
        raise Malformed.at(f"{sent.field}.{NAME}", NEEDS_NAME)
