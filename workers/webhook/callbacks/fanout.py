"""The fan-out of callbacks: one delivery for each notice of a job, a publication or infrastructure, and each callback that it
names.

It is the handler of the consumer. A notice shows the aggregate as of its event. The existence and state of a callback are read when
the delivery is inserted, and again by the sender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, Final
from uuid import UUID

from cachetools import LRUCache
from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.values import TERMINAL
from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.named_callback import NamedCallback
from domain.provision.aggregate import ProvisionInfo
from domain.publication import events
from domain.publication.aggregate import Publication
from domain.webhook.callback import Callback
from projections.kernel.sizes import MIB
from projections.log.reader import LoggedEvent
from projections.log.sized_cache import memory_of
from projections.log.streams import Streams
from projections.record.queries import RecordQueries
from projections.webhook.fanout import NewDelivery
from projections.webhook.keys import DeliverySource
from projections.webhook.store import DISABLED
from workers.kernel.aggregate_cache import AggregateCache
from workers.webhook.callbacks.policy import payload
from workers.webhook.callbacks.provision_notices import payload as provision_payload
from workers.webhook.sender.fanout import DeliveryFanout, Wake

# Notices of publications for their callbacks: see docs/reference/api/publications.md#callbacks. These are pure functions. There
# is a notice of every change of the state, when the target receives a live stream, and when the target has made a publication
# public or private.

_STATES: Final = (
    events.Processed,
    events.PublicationStarted,
    events.Stopped,
    events.Recreated,
    events.PublicationCompleted,
    events.PublicationFailed,
)
NOTED: Final = frozenset(event.TOPIC for event in (*_STATES, events.Arrived, events.PublicationPublished, events.Unpublished))


def notice_of(event: DomainEvent, publication: Publication) -> dict[str, Any]:
    """Return the payload. `publication` is the publication after the event."""
    return {
        "publicationId": publication.key,
        "destinationId": str(publication.destination_id),
        "contentId": publication.content_id,
        "transactionId": str(publication.transaction_id),
        "target": int(publication.target),
        "publicationState": int(publication.state),
        "publicationStateString": publication.state.name,
        "published": publication.published,
        "reason": publication.reason,
        "time": iso(event.timestamp),
        "client": publication.client,
    }


_WITHOUT_CALLBACKS: Final = 8 * MIB


@dataclass(slots=True)
class _Memory:
    """The aggregates as of one position. `without_callbacks` are the streams of jobs that name no callback: their events need not
    be read."""

    position: int
    jobs: AggregateCache[Job]
    provisions: AggregateCache[ProvisionInfo]
    without_callbacks: LRUCache[str, str] = field(default_factory=lambda: LRUCache(_WITHOUT_CALLBACKS, getsizeof=getsizeof))


@dataclass(frozen=True, slots=True)
class _Notice:
    """The notice of one event of an aggregate."""

    record: LoggedEvent
    callbacks: Sequence[NamedCallback]
    body: str


class CallbackFanout(DeliveryFanout[_Memory]):
    """The handler that makes notices. `most` is the size of the cache of jobs in bytes; `wake` notifies the sender of this
    process."""

    source = DeliverySource.CALLBACKS
    topics: Final = frozenset({Job.KIND, ProvisionInfo.KIND, *NOTED})

    def __init__(self, streams: Streams, records: RecordQueries, *, mapper: EventMapper, wake: Wake, most: int = 16 * MIB) -> None:
        self._streams = streams
        self._records = records
        self._most = most
        super().__init__(self._blank(0), mapper=mapper, wake=wake)

    async def _as_of(self, position: int) -> _Memory:
        return self._blank(position)

    def _blank(self, position: int) -> _Memory:
        jobs = AggregateCache(Job, self._streams, most=self._most)
        return _Memory(position, jobs, AggregateCache(ProvisionInfo, self._streams, most=self._most))

    def _forget(self, memory: _Memory, record: LoggedEvent) -> None:
        if record.kind == Job.KIND:
            memory.jobs.forget(record.key)
        elif record.kind == ProvisionInfo.KIND:
            memory.provisions.forget(record.key)

    async def _deliveries(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[NewDelivery]:
        notices = await self._notices(memory, [record for record in records if record.kind != Publication.KIND], start=start)
        for record in records:
            if record.topic in NOTED:
                notices += await self._of_publication(record)
        return await self._new_deliveries(notices) if notices else []

    async def _of_publication(self, record: LoggedEvent) -> Sequence[_Notice]:
        """Return the notices of a publication. Publications change seldom, so each is loaded as of the position of the event."""
        publication = (await self._streams.as_of({record.stream}, record.position)).get(record.stream)
        if not isinstance(publication, Publication):
            return ()
        return [*_make_notices(record, publication.text.callbacks, body=notice_of(self._read(record), publication))]

    async def _notices(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[_Notice]:
        read = [record for record in records if record.stream not in memory.without_callbacks]
        jobs = {record.key: record.version == 1 for record in reversed(read) if record.kind == Job.KIND}
        provisions = {record.key: record.version == 1 for record in reversed(read) if record.kind != Job.KIND}
        await memory.jobs.load(jobs, position=start)
        await memory.provisions.load(provisions, position=start)
        notices = [notice for record in read for notice in self._notices_of(memory, record)]
        for key in jobs:
            job = memory.jobs.get(key)
            if job is not None and job.state in TERMINAL:
                memory.jobs.forget(key)
        memory.jobs.tidy()
        memory.provisions.tidy()
        return notices

    def _notices_of(self, memory: _Memory, record: LoggedEvent) -> Iterator[_Notice]:
        if record.stream in memory.without_callbacks:
            return
        event, size = self._read(record), memory_of(record.state)
        if record.kind != Job.KIND:
            info = memory.provisions.fold(event, size=size)
            yield from _make_notices(record, info.callbacks, body=provision_payload(event, info))
            return
        job = memory.jobs.fold(event, size=size)
        if not job.submission.callbacks:
            memory.jobs.forget(record.key)
            memory.without_callbacks[record.stream] = record.stream
            return
        yield from _make_notices(record, job.submission.callbacks, body=payload(event, job))

    async def _new_deliveries(self, notices: Sequence[_Notice]) -> list[NewDelivery]:
        """Return deliveries for existing callbacks. For a disabled one they are inserted as failed, so that they can be
        recovered."""
        named = {callback.id for notice in notices for callback in notice.callbacks}
        existing = {UUID(row.id): row.details for row in await self._records.by_ids(Callback, named)}
        return [
            NewDelivery(
                callback.id,
                notice.record.position,
                notice.record.stream,
                notice.body,
                notice.record.recorded_at,
                DISABLED if existing[callback.id].disabled_at is not None else None,
                None if callback.sealed_url is None else callback.sealed_url.reference,
            )
            for notice in notices
            for callback in notice.callbacks
            if callback.id in existing
        ]


def _make_notices(record: LoggedEvent, callbacks: Sequence[NamedCallback], *, body: dict[str, Any] | None) -> Iterator[_Notice]:
    if body is not None and callbacks:
        yield _Notice(record, callbacks, to_json(body, inf_nan_mode="null").decode())
