"""From the log to deliveries: one for every notification and every webhook that there was when the write was made.

The consumer's handler. A notification shows its Event as it was right after the write, whatever has happened since: Events are
folded from the very records that come by, and loaded as of a position where they are not at hand. decisions.md, "Webhooks".
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.media_event.aggregate import MediaEvent
from projections.deliveries.fanout import NewDelivery, insert, webhook_events
from projections.kernel.database import Database
from projections.log.streams import Streams
from projections.log.tail import LoggedEvent
from projections.log.writes import writes
from workers.kernel.at_hand import AtHand
from workers.webhooks.owners import OWNED, Owners
from workers.webhooks.payload import payload
from workers.webhooks.policy import effect
from workers.webhooks.subscribers import Subscriber, Subscribers
from workers.webhooks.verdicts import DISABLED

_EVENT: Final = MediaEvent.KIND
_WEBHOOK: Final = "webhook"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Memory:
    """What is known as of one position."""

    position: int
    subscribers: Subscribers
    events: AtHand[MediaEvent]


@dataclass(frozen=True, slots=True)
class _Step:
    """What one write did to one Event, and who is to be told."""

    lane: str
    records: Sequence[LoggedEvent]
    subscribers: Sequence[Subscriber]


@dataclass(frozen=True, slots=True)
class Effects:
    """`late`: of writes that were passed over before."""

    deliveries: Sequence[NewDelivery]
    late: bool


class Fanout:
    """`keep` is how many Events are kept at hand; `wake` tells a sender in this process."""

    kinds: Final = frozenset({_EVENT, _WEBHOOK, *OWNED})

    def __init__(
        self, database: Database, streams: Streams, *, mapper: EventMapper, wake: Callable[[], None], keep: int = 20_000
    ) -> None:
        self._database = database
        self._streams = streams
        self._mapper = mapper
        self._wake = wake
        self._keep = keep
        self._memory = self._blank(0)

    async def begin(self, position: int) -> None:
        self._memory = await self._as_of(position)

    async def prepare(self, records: Sequence[LoggedEvent]) -> Effects | None:
        start = records[0].position - 1
        late = start < self._memory.position
        memory = await self._as_of(start) if late else self._memory
        deliveries = await self._deliveries(memory, records)
        if late and any(record.kind == _WEBHOOK for record in records):
            await self.begin(self._memory.position)
        return Effects(deliveries, late) if deliveries else None

    async def write(self, connection: AsyncConnection[TupleRow], effects: Effects) -> None:
        await insert(connection, effects.deliveries, late=effects.late)

    def wrote(self, effects: Effects) -> None:
        self._wake()

    async def _as_of(self, position: int) -> _Memory:
        """A webhook with a record that cannot be read stays as it was before: the consumer parks that one and all behind it."""
        memory = self._blank(position)
        unread: set[str] = set()
        for stream, version, topic, state in await webhook_events(self._database, position):
            if stream in unread:
                continue
            try:
                memory.subscribers.apply(self._mapper.read(topic, stream=stream, version=version, state=state))
            except (ValueError, LookupError):
                _log.warning("version %d of %s cannot be read; the webhook is taken as it was before", version, stream)
                unread.add(stream)
        return memory

    def _blank(self, position: int) -> _Memory:
        return _Memory(position, Subscribers(), AtHand(MediaEvent, self._streams, keep=self._keep))

    async def _deliveries(self, memory: _Memory, records: Sequence[LoggedEvent]) -> list[NewDelivery]:
        start, memory.position = records[0].position - 1, records[-1].position
        if not memory.subscribers and all(record.kind != _WEBHOOK for record in records):
            memory.events.clear()  # they are passed over
            return []
        owned = {record.position: self._read(record) for record in records if record.kind in OWNED}
        owners = await Owners.before(owned.values(), self._streams, position=start)
        steps = [step for write in writes(records) for step in self._steps(write, memory.subscribers, owned=owned, owners=owners)]
        wanted = {step.lane for step in steps if step.subscribers}
        for step in steps:
            if step.lane not in wanted:
                memory.events.forget(step.lane)
        steps = [step for step in steps if step.lane in wanted]
        await memory.events.load({step.lane: _begins(step.records[0]) for step in reversed(steps)}, position=start)
        deliveries = [one for step in steps for one in self._told(memory.events, step, owned=owned)]
        memory.events.tidy()
        return deliveries

    def _steps(
        self, write: Sequence[LoggedEvent], subscribers: Subscribers, *, owned: Mapping[int, DomainEvent], owners: Owners
    ) -> Iterator[_Step]:
        lanes: defaultdict[str, list[LoggedEvent]] = defaultdict(list)
        for record in write:
            if record.kind in OWNED:
                owners.learn(owned[record.position])
        for record in write:
            if record.kind == _WEBHOOK:
                subscribers.apply(self._read(record))
            elif record.kind in OWNED:
                lanes[owners.event_of(owned[record.position])].append(record)
            elif record.kind == _EVENT:
                lanes[record.key].append(record)
        for lane, together in lanes.items():
            yield _Step(lane, together, subscribers.of(lane))

    def _told(self, events: AtHand[MediaEvent], step: _Step, *, owned: Mapping[int, DomainEvent]) -> Iterable[NewDelivery]:
        happened: list[DomainEvent] = []
        for record in step.records:
            event = owned.get(record.position) or self._read(record)
            happened.append(event)
            if record.kind == _EVENT:
                events.fold(event)
        root, done = events.get(step.lane), effect(happened)
        if root is None or done is None or not step.subscribers:
            return []
        body, last = payload(step.lane, root.details, effect=done), step.records[-1]
        return [
            NewDelivery(one.webhook, last.position, step.lane, body, last.recorded_at, DISABLED if one.disabled else None)
            for one in step.subscribers
        ]

    def _read(self, record: LoggedEvent) -> DomainEvent:
        return self._mapper.read(record.topic, stream=record.stream, version=record.version, state=record.state)


def _begins(record: LoggedEvent) -> bool:
    return record.kind == _EVENT and record.version == 1
