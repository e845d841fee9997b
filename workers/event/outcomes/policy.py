"""The effect of the end of a job on its owner: the handler of the consumer. It writes one order for each outcome of a job with an
owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from sys import getsizeof
from types import MappingProxyType
from typing import Any, ClassVar, Final

from cachetools import LRUCache

from domain.job.aggregate import Job
from domain.job.events import Accepted
from domain.job.outcome import TOPICS, JobOutcome, outcome
from domain.kernel.command import Command
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Executor, Invocation, Plan
from domain.kernel.stream_name import StreamName
from projections.consumers.orders import NewOrder, Order
from projections.kernel.sizes import MIB
from projections.log.reader import LoggedEvent
from projections.log.streams import Streams
from workers.kernel.order_handler import OrderHandler

OwnerCommand = Callable[[str, JobOutcome], Command[Any] | Plan]
"""Makes the command for an outcome to the owner with this key, or a plan if other aggregates change along with it. All of them do
nothing when repeated."""

Followup = Callable[[str, JobOutcome, Invocation], Awaitable[None]]
"""An action after the owner with this key was notified of an outcome. It is repeated if the order is repeated."""

NO_FOLLOWUPS: Final[Mapping[str, Followup]] = MappingProxyType({})


class OwnerCommands:
    """Reports outcomes to owners. `owners` and `followups` are by the kinds of the aggregates. An order for a kind without an owner
    here waits for a process that supports it."""

    def __init__(
        self, executor: Executor, *, owners: Mapping[str, OwnerCommand], followups: Mapping[str, Followup] = NO_FOLLOWUPS
    ) -> None:
        self._executor = executor
        self._owners = owners
        self._followups = followups

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        owner = StreamName.read(order.target)
        outcome = JobOutcome.model_validate_json(order.body)
        command = self._owners[owner.kind](owner.key, outcome)
        if isinstance(command, Plan):
            await self._executor.execute(_as_is(command), invocation=invocation)
        else:
            await self._executor.execute(command, invocation=invocation)
        if owner.kind in self._followups:
            await self._followups[owner.kind](owner.key, outcome, invocation)


def _as_is(plan: Plan) -> Callable[[], Awaitable[Plan]]:
    async def planned() -> Plan:
        return plan

    return planned


CONSUMER: Final = "outcomes"
_WITHOUT_OWNER: Final = 8 * MIB


class OutcomeOrders(OrderHandler):
    """The handler that orders reports of outcomes. A job keeps the owner that it was accepted with, so the jobs without an owner
    are the same at every position of the log."""

    CONSUMER: ClassVar[str] = CONSUMER
    topics: ClassVar[frozenset[str]] = TOPICS

    def __init__(self, streams: Streams, *, mapper: EventMapper, wake: Callable[[], None], most: int = _WITHOUT_OWNER) -> None:
        super().__init__(streams, mapper=mapper, wake=wake)
        self._without_owner: LRUCache[str, str] = LRUCache(most, getsizeof=getsizeof)

    async def begin(self, position: int) -> None:
        """Clear the cache: after a restore of the database another job may have the number of a lost one."""
        self._without_owner.clear()

    async def prepare(self, records: Sequence[LoggedEvent]) -> Sequence[NewOrder] | None:
        read = [(record, self._read(record)) for record in records]
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
