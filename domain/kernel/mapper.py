"""Conversion of domain events to stored bytes and back: the mapper interface of the eventsourcing library, over pydantic's own
JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from eventsourcing.persistence import Mapper, StoredEvent
from pydantic_core import from_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import ENVELOPE, DomainEvent
from domain.kernel.redaction import Redacted, is_redacted, may_be_personal, redacted_class, without_content


class UnknownTopic(LookupError):
    """Raised when the log contains an event that this version of the code does not know."""


class Catalogue:
    """Every aggregate and every domain event of the product, by name. Built once, from an explicit list."""

    def __init__(self, aggregates: Iterable[type[AggregateRoot]]) -> None:
        self.aggregates: dict[str, type[AggregateRoot]] = {root.KIND: root for root in aggregates}
        self.events: dict[str, type[DomainEvent]] = {e.TOPIC: e for a in self.aggregates.values() for e in a.EVENTS}
        self._redacted = {event.TOPIC: event for event in map(redacted_class, self.aggregates)}

    def event(self, topic: str) -> type[DomainEvent]:
        event_class = self.events.get(topic) or self._redacted.get(topic)
        if event_class is None:
            raise UnknownTopic(topic)
        return event_class

    def topics(self, kind: str) -> list[str]:
        """Return the topics of the events of one kind of aggregate."""
        return sorted({*(event.TOPIC for event in self.aggregates[kind].EVENTS), f"{kind}.redacted"})

    def personal_topics(self) -> list[str]:
        """Return the topics of the events that can hold personal data."""
        return [topic for topic, event in self.events.items() if may_be_personal(event)]

    def redacted(self, kind: str) -> type[Redacted]:
        """Return the event that records in a stream of this kind that content was erased."""
        return self._redacted[f"{kind}.redacted"]

    def aggregate(self, kind: str) -> type[AggregateRoot]:
        try:
            return self.aggregates[kind]
        except KeyError:
            raise UnknownTopic(kind) from None


class EventMapper(Mapper[str]):
    """The library's `to_stored_event` and `to_domain_event`, and `read`, which needs no StoredEvent in between.

    Upcasting follows the library's convention: `class_version` on the class, stored in the JSON if it is above 1, and static
    methods `upcast_v1_v2(state)` that change the decoded JSON in place.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def state(self, event: DomainEvent) -> bytes:
        written: bytes = event.__pydantic_serializer__.to_json(event, exclude_unset=True, exclude=set(ENVELOPE))
        if event.class_version > 1:
            written = b'{"class_version":%d,' % event.class_version + written[1:]
        return written

    def read(self, topic: str, *, stream: str, version: int, state: bytes) -> DomainEvent:
        event_class = self.catalogue.event(topic)
        if is_redacted(state):
            at = datetime.fromisoformat(from_json(state)["timestamp"])
            return without_content(event_class, stream=stream, version=version, timestamp=at)
        if event_class.class_version > 1:
            return self._upcast(event_class, stream=stream, version=version, state=state)
        envelope = b'{"originator_id":"%s","originator_version":%d,' % (_quoted(stream), version)
        event: DomainEvent = event_class.__pydantic_validator__.validate_json(envelope + state[1:])
        return event

    def _upcast(self, event_class: type[DomainEvent], *, stream: str, version: int, state: bytes) -> DomainEvent:
        members: dict[str, Any] = from_json(state)
        for old in range(members.pop("class_version", 1), event_class.class_version):
            getattr(event_class, f"upcast_v{old}_v{old + 1}")(members)
        return event_class.model_validate({**members, "originator_id": stream, "originator_version": version})

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        return StoredEvent(
            originator_id=domain_event.originator_id,
            originator_version=domain_event.originator_version,
            topic=domain_event.TOPIC,
            state=self.state(domain_event),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        return self.read(
            stored_event.topic,
            stream=str(stored_event.originator_id),
            version=stored_event.originator_version,
            state=stored_event.state,
        )


def _quoted(stream: str) -> bytes:
    """Return a stream's name for use inside a JSON string. Keys are GUIDs, numbers or client names, so nothing needs to be escaped;
    this is verified."""
    if '"' in stream or "\\" in stream or not stream.isprintable():
        raise ValueError("a stream name holds a character that JSON would escape")
    return stream.encode()
