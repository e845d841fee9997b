"""The base of every domain event: a frozen pydantic model with an explicit topic.

A topic is `<aggregate>.<past tense>` in the words of the API (`event.state_changed`). It is stored with each event and never
changes, even if the class is renamed. A field that is absent in a stored event is absent in `model_fields_set` too: this is how an
event distinguishes "set to nothing" from "not changed".
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from eventsourcing.domain import CanMutateAggregate
from pydantic import BaseModel, ConfigDict

ENVELOPE = frozenset({"originator_id", "originator_version"})


class DomainEvent(BaseModel, CanMutateAggregate[str]):
    """Base of domain events. Writing is strict and reading is tolerant: unknown members of older or newer versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    TOPIC: ClassVar[str] = ""
    class_version: ClassVar[int] = 1
    STANDS_EMPTY: ClassVar[bool] = False
    """True if the event is applied even after its content was erased, with placeholders in its required fields. Set for events that
    end something."""

    originator_id: str
    originator_version: int
    timestamp: datetime

    @classmethod
    def aggregate_kind(cls) -> str:
        return cls.TOPIC.partition(".")[0]

    @classmethod
    def verb(cls) -> str:
        return cls.TOPIC.partition(".")[2]

    def facts(self) -> dict[str, Any]:
        """Return the members of this event that were set, without its envelope."""
        own = self.__dict__
        return {name: own[name] for name in self.model_fields_set if name not in ENVELOPE and name != "timestamp"}

    @property
    def shown(self) -> bool:
        """True if a GET of the aggregate shows the change. Only then do its ETag and modification time change."""
        return True

    def mutate(self, aggregate: Any) -> Any | None:
        mutated: Any = super().mutate(aggregate)
        if self.shown:
            mutated.shown_version, mutated.shown_on = self.originator_version, self.timestamp
        return mutated

    def apply(self, aggregate: Any) -> None:
        """Pass the event to the aggregate's applier of the same name. Appliers never refuse an event."""
        aggregate.when(self)


class FirstEvent(DomainEvent):
    """An event that begins a stream. The library would find the aggregate class by a stored path; here the topic determines it."""

    AGGREGATE: ClassVar[type[Any]]

    def mutate(self, aggregate: Any) -> Any:
        assert aggregate is None, "a first event begins a stream"
        root = object.__new__(self.AGGREGATE)
        root.__base_init__(self.originator_id, self.originator_version, self.timestamp)
        root.begin()
        self.apply(root)
        return root
