"""From the log to callbacks: one delivery for everything that a job's receivers are told, and every webhook that the job names.

The consumer's handler. A notice shows its job as it was right after the event; whether a webhook still stands and works is asked
when it is written, as the sender asks when it sends. Issue 7, "Callbacks"; architecture.md, §3.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.values import TERMINAL
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.records.kinds.webhook import Webhook
from projections.deliveries.fanout import NewDelivery, insert
from projections.log.streams import Streams
from projections.log.tail import LoggedEvent
from projections.records.queries import RecordQueries
from workers.callbacks.policy import payload
from workers.kernel.at_hand import AtHand
from workers.webhooks.fanout import Effects
from workers.webhooks.verdicts import DISABLED

_MOST_SILENT: Final = 100_000


@dataclass(slots=True)
class _Memory:
    """What is known as of one position. `silent` are jobs that name no webhook: nothing of theirs need be read."""

    position: int
    jobs: AtHand[Job]
    silent: OrderedDict[str, None] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the receivers of a job are told of one record."""

    record: LoggedEvent
    job: Job
    body: str


class CallbackFanout:
    """`keep` is how many jobs are kept at hand; `wake` tells a sender in this process."""

    kinds: Final = frozenset({Job.KIND})

    def __init__(
        self, streams: Streams, records: RecordQueries, *, mapper: EventMapper, wake: Callable[[], None], keep: int = 2_000
    ) -> None:
        self._streams = streams
        self._records = records
        self._mapper = mapper
        self._wake = wake
        self._keep = keep
        self._memory = self._blank(0)

    async def begin(self, position: int) -> None:
        self._memory = self._blank(position)

    async def prepare(self, records: Sequence[LoggedEvent]) -> Effects | None:
        start = records[0].position - 1
        late = start < self._memory.position
        memory = self._blank(start) if late else self._memory
        told = await self._told(memory, records, start=start)
        deliveries = await self._deliveries(told) if told else []
        return Effects(deliveries, late) if deliveries else None

    async def write(self, connection: AsyncConnection[TupleRow], effects: Effects) -> None:
        await insert(connection, effects.deliveries, late=effects.late)

    def wrote(self, effects: Effects) -> None:
        self._wake()

    def _blank(self, position: int) -> _Memory:
        return _Memory(position, AtHand(Job, self._streams, keep=self._keep))

    async def _told(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[_Told]:
        memory.position = records[-1].position
        begins = {record.key: record.version == 1 for record in reversed(records) if record.key not in memory.silent}
        await memory.jobs.load(begins, position=start)
        told = [one for record in records for one in self._taken_in(memory, record)]
        for key in begins:
            job = memory.jobs.get(key)
            if job is not None and job.state in TERMINAL:
                memory.jobs.forget(key)
        memory.jobs.tidy()
        while len(memory.silent) > _MOST_SILENT:
            memory.silent.popitem(last=False)
        return told

    def _taken_in(self, memory: _Memory, record: LoggedEvent) -> Iterator[_Told]:
        if record.key in memory.silent:
            return
        event = self._read(record)
        job = memory.jobs.fold(event)
        if not job.submission.callbacks:
            memory.jobs.forget(record.key)
            memory.silent[record.key] = None
            return
        said = payload(event, job)
        if said is not None:
            yield _Told(record, job, to_json(said, inf_nan_mode="null").decode())

    async def _deliveries(self, told: Sequence[_Told]) -> list[NewDelivery]:
        """To webhooks that stand. One that is disabled is owed what it may recover later."""
        links = {(Webhook.KIND, str(webhook)): webhook for one in told for webhook in one.job.submission.callbacks}
        standing = {links[link]: row.details for link, row in (await self._records.linked(links)).items()}
        return [
            NewDelivery(
                webhook,
                one.record.position,
                one.record.stream,
                one.body,
                one.record.recorded_at,
                DISABLED if standing[webhook].disabled_at is not None else None,
            )
            for one in told
            for webhook in one.job.submission.callbacks
            if webhook in standing
        ]

    def _read(self, record: LoggedEvent) -> DomainEvent:
        return self._mapper.read(record.topic, stream=record.stream, version=record.version, state=record.state)
