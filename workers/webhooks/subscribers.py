"""Who is to be told of an Event, as of one position of the log. Document 2, "Events", item 1: all Events, or one.

Made of the webhooks' own domain events, in the log's order: a write is told to those webhooks that there were when it was made.
Callbacks are among them in the log, and are never told of an Event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.kernel.event import DomainEvent

_BEGINS = ("registered", "reinstated")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """`event` is the id of the Event that it wants to hear of; None: of all."""

    webhook: UUID
    event: str | None
    disabled: bool


class Subscribers:
    """The webhooks that stand, by what they want to hear of."""

    def __init__(self) -> None:
        self._known: dict[str, Subscriber] = {}
        self._of_event: defaultdict[str | None, dict[str, Subscriber]] = defaultdict(dict)
        self._callbacks: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._known)

    def of(self, event: str) -> Sequence[Subscriber]:
        of_all, of_one = self._of_event.get(None), self._of_event.get(event)
        return [*(of_all.values() if of_all else ()), *(of_one.values() if of_one else ())]

    def apply(self, event: DomainEvent) -> None:
        """Take in one `webhook.*` domain event."""
        stream, facts = event.originator_id, event.facts()
        before = self._known.get(stream)
        self._drop(stream)
        if event.verb() == "withdrawn":
            self._callbacks.discard(stream)
            return
        if event.verb() in _BEGINS and facts.get("job_client") is not None:
            self._callbacks.add(stream)
        if stream in self._callbacks:
            return
        if event.verb() in _BEGINS:
            wanted, disabled_at = facts.get("event_id"), facts.get("disabled_at")
            self._put(stream, Subscriber(_id(stream), _text(wanted), disabled_at is not None))
        elif before is not None:
            wanted = _text(facts["event_id"]) if "event_id" in facts else before.event
            disabled = facts["disabled_at"] is not None if "disabled_at" in facts else before.disabled
            self._put(stream, Subscriber(before.webhook, wanted, disabled))
        else:
            raise LookupError(f"{stream} has changed but was never seen to begin")

    def _put(self, stream: str, subscriber: Subscriber) -> None:
        self._known[stream] = self._of_event[subscriber.event][stream] = subscriber

    def _drop(self, stream: str) -> None:
        gone = self._known.pop(stream, None)
        if gone is not None:
            those = self._of_event[gone.event]
            del those[stream]
            if not those:
                del self._of_event[gone.event]


def _id(stream: str) -> UUID:
    return UUID(stream.partition(":")[2])


def _text(event: UUID | None) -> str | None:
    return None if event is None else str(event)
