"""Finds the Event of an aggregate that belongs to one, such as a chapter point or a custom property of one: changes of the
aggregate are notified as changes of the Event.

Only the first domain event of such an aggregate names its owner. For later ones the aggregate is loaded as of the position before
the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName
from domain.records.record import Record
from projections.log.streams import Streams
from workers.webhooks.policy import Owner


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
