"""The webhooks to notify about an Event, as of one position of the log: the system-wide ones and those of the Event.

They are folded from the webhooks' own domain events in log order, because a write is notified to the webhooks of its time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.kernel.event import DomainEvent
from domain.kernel.stream_name import StreamName

_BEGINS = ("registered", "restored")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A webhook. `event` is the id of its Event; None if it is system-wide."""

    webhook: UUID
    event: str | None
    disabled: bool


class Subscribers:
    """Existing webhooks by their Event."""

    def __init__(self) -> None:
        self._by_stream: dict[str, Subscriber] = {}
        self._of_event: defaultdict[str | None, dict[str, Subscriber]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._by_stream)

    def of(self, event: str) -> Sequence[Subscriber]:
        of_all, of_one = self._of_event.get(None), self._of_event.get(event)
        return [*(of_all.values() if of_all else ()), *(of_one.values() if of_one else ())]

    def add(self, stream: str, *, event: str | None, disabled: bool) -> None:
        self._put(stream, Subscriber(_id(stream), event, disabled))

    def apply(self, event: DomainEvent) -> None:
        """Apply one `webhook.*` domain event."""
        stream, facts = event.originator_id, event.facts()
        before = self._by_stream.get(stream)
        self._drop(stream)
        if event.verb() == "deleted":
            return
        if event.verb() in _BEGINS:
            event_id, disabled_at = facts.get("event_id"), facts.get("disabled_at")
            self._put(stream, Subscriber(_id(stream), _text(event_id), disabled_at is not None))
        elif before is not None:
            event_id = _text(facts["event_id"]) if "event_id" in facts else before.event
            disabled = facts["disabled_at"] is not None if "disabled_at" in facts else before.disabled
            self._put(stream, Subscriber(before.webhook, event_id, disabled))

    def _put(self, stream: str, subscriber: Subscriber) -> None:
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
