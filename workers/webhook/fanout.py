"""The fan-out of notifications: one delivery for each write to an Event and each webhook that existed at that time.

It is the handler of the consumer. A notification shows the Event as of its write, whatever happens later: Events are folded from
the records of the feed, and loaded as of a position if they are not in the cache.

See docs/explanation/delivery.md#what-a-notification-contains.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from pydantic_core import to_json

from domain.event.aggregate import MediaEvent
from domain.event.values import EventDetails
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.stream_name import StreamName
from domain.record.record import Record
from projections.event.queries import events_that_show
from projections.kernel.database.database import Database
from projections.kernel.sizes import MIB
from projections.log.reader import LoggedEvent
from projections.log.sized_cache import memory_of
from projections.log.streams import Streams
from projections.log.transactions import writes
from projections.webhook.fanout import NewDelivery, webhooks_as_of
from projections.webhook.keys import DeliverySource
from projections.webhook.store import DISABLED
from workers.kernel.aggregate_cache import AggregateCache
from workers.webhook.policy import Effect, EventChange, Notified, Owner, PayloadAction, effect
from workers.webhook.sender.fanout import DeliveryFanout, Wake

# The payload of a notification: see docs/reference/api/webhooks.md#notification. It is stored as the JSON text that is sent, so
# that every retry sends the same bytes. A form body is made from that text.


def payload(event_id: str, details: EventDetails, *, effect: Effect) -> str:
    """Return compact JSON. `details` are those of the Event right after the write that had the effect."""
    changes = effect.changes
    return to_json(
        {
            "eventId": event_id,
            "referenceId": details.ref_id or "",
            "externalId": details.external_id or "",
            "state": details.state.name,
            "stateChanged": EventChange.STATE in changes,
            "metadataChanged": EventChange.METADATA in changes,
            "thumbnailChanged": EventChange.THUMBNAIL in changes,
            "isForced": EventChange.FORCED in changes,
            "audioChanged": EventChange.AUDIO in changes,
            "mp4State": details.mp4_state.name,
            "mp4StateChanged": EventChange.MP4_STATE in changes,
            "chapterPointsChanged": EventChange.CHAPTER_POINTS in changes,
            "assetsChanged": EventChange.ASSETS in changes,
            "provisionState": None if details.provision is None else details.provision.state.name,
            "provisionStateChanged": EventChange.PROVISION_STATE in changes,
            "capturingLive2VodFlagChanged": EventChange.CAPTURING in changes,
            "action": effect.action.value,
        }
    ).decode()


def sample() -> str:
    """Return a sample to test a receiver. No Event has its id."""
    return payload(str(UUID(int=0)), EventDetails.blank(), effect=Effect(PayloadAction.UPDATED, EventChange.FORCED))


# The webhooks to notify about an Event, as of one position of the log: the system-wide ones and those of the Event. They are
# folded from the webhooks' own domain events in log order, because a write is notified to the webhooks of its time.

_BEGINS = ("registered", "restored")


@dataclass(frozen=True, slots=True)
class SubscribedWebhook:
    """A webhook. `event` is the id of its Event; None if it is system-wide."""

    webhook: UUID
    event: str | None
    disabled: bool


class Subscribers:
    """Existing webhooks by their Event."""

    def __init__(self) -> None:
        self._by_stream: dict[str, SubscribedWebhook] = {}
        self._of_event: defaultdict[str | None, dict[str, SubscribedWebhook]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._by_stream)

    def of(self, event: str) -> Sequence[SubscribedWebhook]:
        of_all, of_one = self._of_event.get(None), self._of_event.get(event)
        return [*(of_all.values() if of_all else ()), *(of_one.values() if of_one else ())]

    def add(self, stream: str, *, event: str | None, disabled: bool) -> None:
        self._put(stream, SubscribedWebhook(_id(stream), event, disabled))

    def apply(self, event: DomainEvent) -> None:
        """Apply one `webhook.*` domain event."""
        stream, facts = event.originator_id, event.facts()
        before = self._by_stream.get(stream)
        self._drop(stream)
        if event.verb() == "deleted":
            return
        if event.verb() in _BEGINS:
            event_id, disabled_at = facts.get("event_id"), facts.get("disabled_at")
            self._put(stream, SubscribedWebhook(_id(stream), _text(event_id), disabled_at is not None))
        elif before is not None:
            event_id = _text(facts["event_id"]) if "event_id" in facts else before.event
            disabled = facts["disabled_at"] is not None if "disabled_at" in facts else before.disabled
            self._put(stream, SubscribedWebhook(before.webhook, event_id, disabled))

    def _put(self, stream: str, subscriber: SubscribedWebhook) -> None:
        self._by_stream[stream] = self._of_event[subscriber.event][stream] = subscriber

    def _drop(self, stream: str) -> None:
        dropped = self._by_stream.pop(stream, None)
        if dropped is not None:
            others = self._of_event[dropped.event]
            del others[stream]
            if not others:
                del self._of_event[dropped.event]


def _id(stream: str) -> UUID:
    return UUID(StreamName.read(stream).key)


def _text(event: UUID | None) -> str | None:
    return None if event is None else str(event)


# Finds the Event of an aggregate that belongs to one, such as a chapter point or a custom property of one: changes of the
# aggregate are notified as changes of the Event. Only the first domain event of such an aggregate names its owner. For later ones
# the aggregate is loaded as of the position before the batch.


class EventResolver:
    """The owners of aggregates of these kinds. `learn` takes each of their domain events, in log order."""

    def __init__(self, owners: Mapping[str, Owner]) -> None:
        self._owners = owners
        self._owner_keys: dict[str, str] = {}

    @classmethod
    async def before(cls, events: Collection[DomainEvent], streams: Streams, *, owners: Mapping[str, Owner], position: int) -> Self:
        """Return a resolver with the owners of these events' aggregates as of a position."""
        resolver = cls(owners)
        first = {event.originator_id for event in events if event.originator_version == 1}
        named = {event.originator_id: owner for event in events if (owner := resolver._owner_in(event)) is not None}
        wanted = {event.originator_id for event in events} | resolver._owner_streams(named)
        while missing := wanted - first - resolver._owner_keys.keys():
            loaded = await resolver._load(missing, streams, position=position)
            first |= missing - loaded.keys()
            resolver._owner_keys |= loaded
            wanted = resolver._owner_streams(loaded)
        return resolver

    def learn(self, event: DomainEvent) -> None:
        """Record the owner that a domain event names. Call it for a whole write first: a property may come before its chapter
        point."""
        owner = self._owner_in(event)
        if owner is not None:
            self._owner_keys[event.originator_id] = owner

    def event_of(self, event: DomainEvent) -> str:
        """Return the id of the Event that a domain event belongs to. Raise `LookupError` if the log does not contain it."""
        stream, owner = event.originator_id, self._owner_keys[event.originator_id]
        while (above := self._owner_stream(stream, owner)) is not None:
            stream, owner = above, self._owner_keys[above]
        return owner

    async def _load(self, wanted: Collection[str], streams: Streams, *, position: int) -> dict[str, str]:
        roots = await streams.as_of(wanted, position)
        return {
            stream: str(getattr(root.details if isinstance(root, Record) else root, self._owners[root.KIND].field))
            for stream, root in roots.items()
        }

    def _owner_in(self, event: DomainEvent) -> str | None:
        owner = event.facts().get(self._owners[event.aggregate_kind()].field)
        return None if owner is None else str(owner)

    def _owner_streams(self, named: Mapping[str, str]) -> set[str]:
        return {owner for stream, key in named.items() if (owner := self._owner_stream(stream, key)) is not None}

    def _owner_stream(self, stream: str, owner: str) -> str | None:
        """Return the stream of the owner; None if the owner is an Event."""
        kind = self._owners[StreamName.read(stream).kind].kind
        return f"{kind}:{owner}" if kind in self._owners else None


_EVENT: Final = MediaEvent.KIND
_WEBHOOK: Final = "webhook"
_METADATA: Final = Effect(PayloadAction.UPDATED, EventChange.METADATA)
_SLICE: Final = 100
"""The number of Events that are loaded at once to notify of a change of a record that they show."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Memory:
    """Webhooks and Events as of one position."""

    position: int
    subscribers: Subscribers
    events: AggregateCache[MediaEvent]


@dataclass(frozen=True, slots=True)
class _EventWrite:
    """A write to an Event, and the webhooks to notify."""

    event_id: str
    records: Sequence[LoggedEvent]
    subscribers: Sequence[SubscribedWebhook]


class NotificationFanout(DeliveryFanout[_Memory]):
    """The handler that makes notifications. `notified` maps the kinds of aggregates to the meaning of their domain events. `most`
    is the size of the cache of Events in bytes; `wake` notifies the sender of this process."""

    source = DeliverySource.NOTIFICATIONS

    def __init__(
        self,
        database: Database,
        streams: Streams,
        *,
        mapper: EventMapper,
        notified: Mapping[str, Notified],
        wake: Wake,
        most: int = 64 * MIB,
    ) -> None:
        self.topics = frozenset({_WEBHOOK, *notified})
        self._notified = notified
        self._owners = {kind: meaning.owner for kind, meaning in notified.items() if meaning.owner is not None}
        self._shown_by = {kind: meaning.shown_by for kind, meaning in notified.items() if meaning.shown_by}
        self._database = database
        self._streams = streams
        self._most = most
        super().__init__(self._blank(0), mapper=mapper, wake=wake)

    def _forget(self, memory: _Memory, record: LoggedEvent) -> None:
        if record.kind == _EVENT:
            memory.events.forget(record.key)

    def _outdates(self, records: Sequence[LoggedEvent]) -> bool:
        return any(record.kind == _WEBHOOK for record in records)

    async def _as_of(self, position: int) -> _Memory:
        """Return the memory as of a position. A webhook with an unreadable event and later ones is used as it was before that
        event: the consumer parks them."""
        memory = self._blank(position)
        unread: set[str] = set()
        then = await webhooks_as_of(self._database, position)
        for stream, event, disabled in then.unchanged:
            memory.subscribers.add(stream, event=event, disabled=disabled)
        for stream, version, topic, state in then.events:
            if stream in unread:
                continue
            try:
                memory.subscribers.apply(self._mapper.read(topic, stream=stream, version=version, state=state))
            except (ValueError, LookupError):
                _log.warning("version %d of %s cannot be read; the webhook is used as it was before", version, stream)
                unread.add(stream)
        return memory

    def _blank(self, position: int) -> _Memory:
        return _Memory(position, Subscribers(), AggregateCache(MediaEvent, self._streams, most=self._most))

    async def _deliveries(self, memory: _Memory, records: Sequence[LoggedEvent], *, start: int) -> list[NewDelivery]:
        if not memory.subscribers and all(record.kind != _WEBHOOK for record in records):
            memory.events.clear()  # their events are skipped
            return []
        owned = {record.position: self._read(record) for record in records if record.kind in self._owners}
        resolver = await EventResolver.before(owned.values(), self._streams, owners=self._owners, position=start)
        showing = await self._showing(records, owned=owned, resolver=resolver)
        every_write = [
            event_write
            for write in writes(records)
            for event_write in self._event_writes(write, memory.subscribers, owned=owned, resolver=resolver, showing=showing)
        ]
        event_writes = [event_write for event_write in every_write if event_write.records[-1].kind not in self._shown_by]
        subscribed = {event_write.event_id for event_write in event_writes if event_write.subscribers}
        for event_write in event_writes:
            if event_write.event_id not in subscribed:
                memory.events.forget(event_write.event_id)
        event_writes = [event_write for event_write in event_writes if event_write.event_id in subscribed]
        await memory.events.load(
            {event_write.event_id: _is_first(event_write.records[0]) for event_write in reversed(event_writes)}, position=start
        )
        deliveries = [new for event_write in event_writes for new in self._new_deliveries(memory.events, event_write, owned=owned)]
        memory.events.tidy()
        if not showing:
            return deliveries
        renamed = [
            event_write for event_write in every_write if event_write.records[-1].kind in self._shown_by and event_write.subscribers
        ]
        return sorted([*deliveries, *await self._of_shown(renamed)], key=lambda new: new.position)

    async def _showing(
        self, records: Sequence[LoggedEvent], *, owned: Mapping[int, DomainEvent], resolver: EventResolver
    ) -> Mapping[int, Sequence[str]]:
        """Return the Events that show what a write changed in a room, a type or a category, by the position of the last such change
        of the write."""
        events_by_position: dict[int, Sequence[str]] = {}
        for write in writes([record for record in records if record.kind in self._shown_by]):
            keys: defaultdict[str, dict[UUID, None]] = defaultdict(dict)
            for record in write:
                event = owned.get(record.position) or self._read(record)
                if self._notified[record.kind].changes(event):
                    if record.kind in self._owners:
                        resolver.learn(event)
                    key = resolver.event_of(event) if record.kind in self._owners else record.key
                    keys[self._shown_by[record.kind]][UUID(key)] = None
                    last = record
            events = dict[str, None]()
            for link, linked in keys.items():
                events |= dict.fromkeys(await events_that_show(self._database, list(linked), link=link, at=last.recorded_at))
            if events:
                events_by_position[last.position] = list(events)
        return events_by_position

    async def _of_shown(self, renamed: Sequence[_EventWrite]) -> list[NewDelivery]:
        """Return deliveries about Events that show what was changed. The Events are as of the change, a slice at a time: they are
        not kept in memory."""
        deliveries: list[NewDelivery] = []
        by_position: defaultdict[int, list[_EventWrite]] = defaultdict(list)
        for event_write in renamed:
            by_position[event_write.records[-1].position].append(event_write)
        for position, together in by_position.items():
            for start in range(0, len(together), _SLICE):
                some = together[start : start + _SLICE]
                roots = await self._streams.as_of([MediaEvent.stream(event_write.event_id) for event_write in some], position)
                for event_write in some:
                    root = roots.get(MediaEvent.stream(event_write.event_id))
                    if isinstance(root, MediaEvent) and not root.deleted:
                        deliveries += _deliveries_of(event_write, payload(event_write.event_id, root.details, effect=_METADATA))
        return deliveries

    def _event_writes(
        self,
        write: Sequence[LoggedEvent],
        subscribers: Subscribers,
        *,
        owned: Mapping[int, DomainEvent],
        resolver: EventResolver,
        showing: Mapping[int, Sequence[str]],
    ) -> Iterator[_EventWrite]:
        by_event: defaultdict[str, list[LoggedEvent]] = defaultdict(list)
        for record in write:
            if record.kind in self._owners:
                resolver.learn(owned[record.position])
        for record in write:
            if record.kind == _WEBHOOK:
                subscribers.apply(self._read(record))
            elif record.kind in self._shown_by:
                for event_id in showing.get(record.position, ()):
                    yield _EventWrite(event_id, [record], subscribers.of(event_id))
            elif record.kind in self._owners:
                by_event[resolver.event_of(owned[record.position])].append(record)
            elif record.kind == _EVENT:
                by_event[record.key].append(record)
        for event_id, together in by_event.items():
            yield _EventWrite(event_id, together, subscribers.of(event_id))

    def _new_deliveries(
        self, events: AggregateCache[MediaEvent], write: _EventWrite, *, owned: Mapping[int, DomainEvent]
    ) -> Iterable[NewDelivery]:
        domain_events: list[DomainEvent] = []
        for record in write.records:
            domain_event = owned.get(record.position) or self._read(record)
            domain_events.append(domain_event)
            if record.kind == _EVENT:
                events.fold(domain_event, size=memory_of(record.state))
        event, changed = events.get(write.event_id), effect(domain_events, self._notified)
        if event is None or changed is None or not write.subscribers:
            return []
        return _deliveries_of(write, payload(write.event_id, event.details, effect=changed))


def _deliveries_of(write: _EventWrite, body: str) -> list[NewDelivery]:
    last = write.records[-1]
    return [
        NewDelivery(
            subscriber.webhook, last.position, write.event_id, body, last.recorded_at, DISABLED if subscriber.disabled else None
        )
        for subscriber in write.subscribers
    ]


def _is_first(record: LoggedEvent) -> bool:
    return record.kind == _EVENT and record.version == 1
