"""The effect of the end of a job on its owner: the handler of the consumer. It writes one order for each outcome of a job with an
owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import ClassVar, Final

from cachetools import LRUCache

from domain.job.aggregate import Job
from domain.job.events import Accepted
from domain.job.outcome import TOPICS, outcome
from domain.kernel.mapper import EventMapper
from projections.effects.orders import NewOrder
from projections.kernel.sizes import MIB
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.kernel.order_handler import OrderHandler

CONSUMER: Final = "outcomes"
_WITHOUT_OWNER: Final = 8 * MIB


class OutcomeOrders(OrderHandler):
    """The handler that orders reports of outcomes. A job keeps the owner that it was accepted with, so the jobs without an owner
    are the same at every position of the log."""

    CONSUMER: ClassVar[str] = CONSUMER
    kinds: ClassVar[frozenset[str]] = frozenset({Job.KIND})

    def __init__(self, streams: Streams, *, mapper: EventMapper, wake: Callable[[], None], most: int = _WITHOUT_OWNER) -> None:
        super().__init__(streams, mapper=mapper, wake=wake)
        self._without_owner: LRUCache[str, str] = LRUCache(most, getsizeof=getsizeof)

    async def begin(self, position: int) -> None:
        """Clear the cache: after a restore of the database another job may have the number of a lost one."""
        self._without_owner.clear()

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        read = [(record, self._read(record)) for record in records if record.topic in TOPICS]
        for record, event in read:
            if isinstance(event, Accepted) and event.submission.owner is None:
                self._note_ownerless(record.stream)
        wanted = {record.stream for record, _ in read if record.stream not in self._without_owner}
        jobs = await self._streams.as_of(wanted, records[-1].position)
        orders = []
        for record, event in read:
            job = jobs.get(record.stream)
            if not isinstance(job, Job):
                continue
            if job.submission.owner is None:
                self._note_ownerless(record.stream)
            elif (result := outcome(event, job)) is not None:
                details = {"version": record.version, "content_id": job.submission.content_id}
                body = result.model_copy(update=details).model_dump_json()
                orders.append(NewOrder(record.position, job.submission.owner, body, record.event_id, job.transaction_id))
        return orders or None

    def _note_ownerless(self, stream: str) -> None:
        self._without_owner[stream] = stream
