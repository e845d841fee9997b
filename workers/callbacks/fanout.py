"""Fan-out of callbacks: one delivery for each notice of a job and each callback that the job names.

The handler of the consumer. A notice shows the job as of its event. Whether a callback exists and is enabled is read when the
delivery is inserted, and again by the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final
from uuid import UUID

from cachetools import LRUCache
from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.values import TERMINAL
from domain.kernel.mapper import EventMapper
from domain.webhook.callback import Callback
from projections.deliveries.fanout import NewDelivery
from projections.deliveries.keys import Source
from projections.kernel.sizes import MIB
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from projections.log.weighed import memory_of
from projections.records.queries import RecordQueries
from workers.callbacks.policy import payload
from workers.deliveries.endpoint_state import DISABLED
from workers.deliveries.fanout import DeliveryFanout
from workers.kernel.aggregate_cache import AggregateCache

_WITHOUT_CALLBACKS: Final = 8 * MIB


@dataclass(slots=True)
class _Memory:
    """Jobs as of one position. `without_callbacks` are jobs that name none: their events need not be read."""

    position: int
    jobs: AggregateCache[Job]
    without_callbacks: LRUCache[str, str] = field(default_factory=lambda: LRUCache(_WITHOUT_CALLBACKS, getsizeof=getsizeof))


@dataclass(frozen=True, slots=True)
class _JobNotice:
    """The notice of one event of a job."""

    record: LoggedEvent
    job: Job
    body: str


class CallbackFanout(DeliveryFanout[_Memory]):
    """`most` is the size of the cache of jobs, in bytes; `wake` notifies the sender of this process."""

    source = Source.CALLBACKS
    kinds: Final = frozenset({Job.KIND})

    def __init__(
        self, streams: Streams, records: RecordQueries, *, mapper: EventMapper, wake: Callable[[], None], most: int = 16 * MIB
    ) -> None:
        self._streams = streams
        self._records = records
        self._most = most
        super().__init__(self._blank(0), mapper=mapper, wake=wake)

    async def _as_of(self, position: int) -> _Memory:
        return self._blank(position)

    def _blank(self, position: int) -> _Memory:
        return _Memory(position, AggregateCache(Job, self._streams, most=self._most))

    async def _deliveries(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[NewDelivery]:
        notices = await self._notices(memory, records, start=start)
        return await self._new_deliveries(notices) if notices else []

    async def _notices(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[_JobNotice]:
        is_first = {record.key: record.version == 1 for record in reversed(records) if record.key not in memory.without_callbacks}
        await memory.jobs.load(is_first, position=start)
        notices = [notice for record in records for notice in self._notices_of(memory, record)]
        for key in is_first:
            job = memory.jobs.get(key)
            if job is not None and job.state in TERMINAL:
                memory.jobs.forget(key)
        memory.jobs.tidy()
        return notices

    def _notices_of(self, memory: _Memory, record: LoggedEvent) -> Iterator[_JobNotice]:
        if record.key in memory.without_callbacks:
            return
        event = self._read(record)
        job = memory.jobs.fold(event, size=memory_of(record.state))
        if not job.submission.callbacks:
            memory.jobs.forget(record.key)
            memory.without_callbacks[record.key] = record.key
            return
        body = payload(event, job)
        if body is not None:
            yield _JobNotice(record, job, to_json(body, inf_nan_mode="null").decode())

    async def _new_deliveries(self, notices: Sequence[_JobNotice]) -> list[NewDelivery]:
        """For existing callbacks. For a disabled one they are inserted as failed, so that they can be recovered."""
        named = {callback.id for notice in notices for callback in notice.job.submission.callbacks}
        existing = {UUID(row.id): row.details for row in await self._records.those(Callback.KIND, named)}
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
            for callback in notice.job.submission.callbacks
            if callback.id in existing
        ]
