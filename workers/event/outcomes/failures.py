"""The reasons of failures, in the log of the Event that they are about: the handler of a consumer.

Each change of an Event, or of an asset, a publication or infrastructure of one, to a failed state is a domain event. Each of these
events becomes an entry of the log store here, in the transaction of the checkpoint: exactly once, whoever appended the event and
however often it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.asset import events as asset
from domain.asset.aggregate import Asset
from domain.composition import events as composition
from domain.event import events as media_event
from domain.event.aggregate import MediaEvent
from domain.event.values import FAILED, QualityVerdict, Trigger, VodJob, VodJobEnd, VodWorkflow
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.masking import clean_line, masked
from domain.provision import events as provision
from domain.provision.aggregate import ProvisionInfo
from domain.provision.values import ProvisionState
from domain.publication import events as publication
from domain.publication.aggregate import Publication
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from projections.log.transactions import writes
from projections.log_store.log_store import Level, Logbook, Note

E = TypeVar("E", bound=DomainEvent)
CONSUMER: Final = "failures"
_UNKNOWN: Final = "no reason is known"
_BY_CLIENT: Final = "a client has set the state"
_BROKEN: Final = "it was broken off"
_TRIGGERED: Final = (Trigger.JOB, Trigger.COMPOSE)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure: what failed, the reason, and the Event that it is about."""

    event_id: str
    what: str
    reason: str
    level: Level = Level.ERROR


def _of_asset(event: Any, root: Asset) -> _Failure:
    return _Failure(str(root.event_id), f"The asset {root.key} ({root.name}) has failed", event.reason)


def _of_publication(event: Any, root: Publication) -> _Failure:
    return _Failure(root.content_id, f"The publication {root.key} is {event.state.name}", event.reason)


def _of_provision(state: ProvisionState) -> Callable[[Any, ProvisionInfo], _Failure]:
    return lambda event, root: _Failure(str(root.event_id), f"The infrastructure is {state.name}", event.reason)


def _of_partial(event: Any, root: ProvisionInfo) -> _Failure | None:
    if not event.partial:
        return None
    state = ProvisionState.PROVISIONED_PARTIAL.name
    return _Failure(str(root.event_id), f"The infrastructure is {state}", event.reason, Level.WARN)


def _of_release(event: Any, root: ProvisionInfo) -> _Failure | None:
    """Return a failure if the termination after a reset failed: no state shows it after that."""
    return (
        _Failure(str(root.event_id), "The infrastructure was not terminated after the reset", event.reason) if event.left else None
    )


def _of_quality(event: media_event.QualityMeasured, root: MediaEvent) -> _Failure | None:
    quality = event.quality
    if quality is None or not quality.withholds:
        return None
    text = " ".join(reason.message for reason in quality.reasons if reason.verdict is QualityVerdict.FAIL)
    return _Failure(root.key, f"The film does not become public: it fails by {quality.profile}", text, Level.WARN)


_READ: Final[Mapping[str, Callable[[Any, Any], _Failure | None]]] = {
    asset.AssetFailed.TOPIC: _of_asset,
    media_event.QualityMeasured.TOPIC: _of_quality,
    publication.PublicationFailed.TOPIC: _of_publication,
    provision.ProvisionFailed.TOPIC: _of_provision(ProvisionState.PROVISIONING_FAILED),
    provision.TerminationFailed.TOPIC: _of_provision(ProvisionState.TERMINATING_FAILED),
    provision.Provisioned.TOPIC: _of_partial,
    provision.ReleaseEnded.TOPIC: _of_release,
}
_TOPICS: Final = frozenset(
    {*_READ, media_event.StateChanged.TOPIC, media_event.VodJobEnded.TOPIC, composition.GenerationFailed.TOPIC}
)


class FailureNotes:
    """The handler that writes the entries to `logbook`."""

    topics: Final = _TOPICS

    def __init__(self, streams: Streams, logbook: Logbook, *, mapper: EventMapper) -> None:
        self._streams = streams
        self._logbook = logbook
        self._mapper = mapper

    async def begin(self, position: int) -> None:
        """Do nothing: no state is in memory."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[Note] | None:
        notes = []
        for write in writes(records):
            read = [(record, self._read(record)) for record in write]
            for record, event in read:
                failure = await self._failure(record, event, same_write=[other for _, other in read])
                if failure is not None:
                    reason = clean_line(masked(failure.reason or _UNKNOWN))
                    notes.append(Note(failure.level, f"{failure.what}: {reason}", failure.event_id, record.recorded_at))
        return notes or None

    async def write(self, connection: AsyncConnection[TupleRow], effects: Sequence[Note]) -> None:
        await self._logbook.insert(connection, effects)

    def wrote(self, effects: Sequence[Note]) -> None:
        """Do nothing: there is no worker to wake."""

    async def _failure(self, record: LoggedEvent, event: DomainEvent, *, same_write: Sequence[DomainEvent]) -> _Failure | None:
        if isinstance(event, media_event.StateChanged):
            return await self._of_state(record, event, same_write) if event.state in FAILED else None
        if isinstance(event, media_event.VodJobEnded):
            return _of_job(record, event.vod_job, same_write)
        understood = _READ.get(record.topic)
        root = None if understood is None else await self._root(record)
        return None if understood is None or root is None else understood(event, root)

    async def _of_state(self, record: LoggedEvent, event: media_event.StateChanged, same_write: Sequence[DomainEvent]) -> _Failure:
        """Return the failure of an Event. A playlist gives the reason if no film is made of it; otherwise the job that has ended
        does."""
        what = f"The Event is {event.state.name}"
        if event.trigger not in _TRIGGERED:
            return _Failure(record.key, what, _BY_CLIENT)
        composed = next(_all(same_write, composition.GenerationFailed), None)
        root = await self._root(record)
        job = root.details.vod_job if isinstance(root, MediaEvent) else None
        if composed is not None:
            return _Failure(record.key, what, composed.reason)
        return _Failure(record.key, what, "" if job is None else f"{_describe_job(job)}: {job.reason or _BROKEN}")

    async def _root(self, record: LoggedEvent) -> Any:
        return (await self._streams.as_of({record.stream}, record.position)).get(record.stream)

    def _read(self, record: LoggedEvent) -> DomainEvent:
        return record.decoded(self._mapper)


def _of_job(record: LoggedEvent, job: VodJob, same_write: Sequence[DomainEvent]) -> _Failure | None:
    """Return the failure of a job if its Event keeps its state, such as an Event that is already on demand. The job of a playlist
    that is replaced or removed is cancelled, and has not failed."""
    failed = job.ended is VodJobEnd.FAILED or (job.ended is VodJobEnd.BROKEN and job.workflow is not VodWorkflow.COMPOSE)
    reported = any(change.state in FAILED for change in _all(same_write, media_event.StateChanged))
    return (
        _Failure(record.key, _describe_job(job)[0].upper() + _describe_job(job)[1:], job.reason or _BROKEN)
        if failed and not reported
        else None
    )


def _describe_job(job: VodJob) -> str:
    verb = "has failed" if job.ended is VodJobEnd.FAILED else "was broken off"
    return f"the job {job.number} ({job.workflow}) {verb}"


def _all(events: Sequence[DomainEvent], kind: type[E]) -> Iterator[E]:
    return (event for event in events if isinstance(event, kind))
