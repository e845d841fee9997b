"""Which Event a chapter point belongs to, and with it its properties. Document 2, "Events": ChapterPointsChanged.

Only the domain event that begins such a record says so; of the others it is looked up as of the position before the batch.
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


class Owners:
    """Told of every domain event of these records, in the log's order."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)

    @classmethod
    async def before(cls, events: Collection[DomainEvent], streams: Streams, *, position: int) -> Self:
        """What was known of the records of these events when the log had come to a position."""
        begun = {event.originator_id for event in events if event.originator_version == 1}
        known = await _owners({event.originator_id for event in events} - begun, streams, position=position)
        properties = [*known.items(), *((event.originator_id, owner) for event in events if (owner := _stated(event)))]
        points = {ChapterPoint.stream(owner) for stream, owner in properties if _is_property(stream)}
        return cls({**known, **await _owners(points - known.keys() - begun, streams, position=position)})

    def learn(self, event: DomainEvent) -> None:
        """To be done with a whole write first: a property may lie before the chapter point that is made with it."""
        stated = _stated(event)
        if stated is not None:
            self._known[event.originator_id] = stated

    def event_of(self, event: DomainEvent) -> str:
        """The id of the Event that one domain event concerns. Raises `LookupError` where the log does not say."""
        owner = self._known[event.originator_id]
        return self._known[ChapterPoint.stream(owner)] if _is_property(event.originator_id) else owner


async def _owners(streams: Collection[str], log: Streams, *, position: int) -> dict[str, str]:
    found = await log.as_of(streams, position)
    return {stream: str(getattr(root.details, root.PARENT)) for stream, root in found.items() if isinstance(root, Record)}


def _stated(event: DomainEvent) -> str | None:
    owner = event.facts().get(OWNED[event.aggregate_kind()])
    return None if owner is None else str(owner)


def _is_property(stream: str) -> bool:
    return stream.startswith(f"{ChapterPointProperty.KIND}:")
