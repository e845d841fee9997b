"""Finds the Event of a chapter point, or of a custom property of one: their changes are notified as changes of the Event.

Only the first domain event of such a record names its owner. For later ones the record is loaded as of the position before the
batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Self

from domain.kernel.event import DomainEvent
from domain.records.kinds.chapter_point import ChapterPoint
from domain.records.kinds.custom_property import ChapterPointProperty
from domain.records.record import Record
from projections.log.streams import Streams

OWNED: Final[Mapping[str, str]] = {kind.KIND: kind.PARENT for kind in (ChapterPoint, ChapterPointProperty)}


class EventResolver:
    """Knows owners of chapter points and their properties. `learn` takes each domain event of them, in log order."""

    def __init__(self, owners: Mapping[str, str]) -> None:
        self._owners = dict(owners)

    @classmethod
    async def before(cls, events: Collection[DomainEvent], streams: Streams, *, position: int) -> Self:
        """With the owners of these events' records as of a position."""
        first = {event.originator_id for event in events if event.originator_version == 1}
        known = await _owners({event.originator_id for event in events} - first, streams, position=position)
        properties = [*known.items(), *((event.originator_id, owner) for event in events if (owner := _named_owner(event)))]
        points = {ChapterPoint.stream(owner) for stream, owner in properties if _is_property(stream)}
        return cls({**known, **await _owners(points - known.keys() - first, streams, position=position)})

    def learn(self, event: DomainEvent) -> None:
        """Take the owner that a domain event names. Call it for a whole write first: a property may come before its chapter
        point."""
        owner = _named_owner(event)
        if owner is not None:
            self._owners[event.originator_id] = owner

    def event_of(self, event: DomainEvent) -> str:
        """The id of the Event that a domain event belongs to. Raises `LookupError` where the log does not tell it."""
        owner = self._owners[event.originator_id]
        return self._owners[ChapterPoint.stream(owner)] if _is_property(event.originator_id) else owner


async def _owners(streams: Collection[str], log: Streams, *, position: int) -> dict[str, str]:
    found = await log.as_of(streams, position)
    return {stream: str(getattr(root.details, root.PARENT)) for stream, root in found.items() if isinstance(root, Record)}


def _named_owner(event: DomainEvent) -> str | None:
    owner = event.facts().get(OWNED[event.aggregate_kind()])
    return None if owner is None else str(owner)


def _is_property(stream: str) -> bool:
    return stream.startswith(f"{ChapterPointProperty.KIND}:")
