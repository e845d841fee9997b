"""given / when / then for aggregates: earlier events, a command, the new events. No I/O.

Histories pass through stored bytes, so every scenario also proves that what was written can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import signature
from typing import Any, Generic, TypeVar

from api.wiring.catalogue import catalogue
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command, CreationCommand, CreationOf, DecisionCommand, DecisionOf
from domain.kernel.errors import DomainError
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper

THEN = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
"""The time of all given events."""
NOW = datetime(2031, 1, 2, 13, 30, tzinfo=UTC)
"""The time of the command."""

MAPPER = EventMapper(catalogue())

R = TypeVar("R", bound=AggregateRoot)
D = TypeVar("D", bound=DomainError)


@dataclass(frozen=True)
class Fact:
    """A domain event without its envelope."""

    event: type[DomainEvent]
    facts: dict[str, Any] = field(default_factory=dict)


def fact(event: type[DomainEvent], **facts: Any) -> Fact:
    return Fact(event, facts)


def arguments_of(command: Command[Any], decision: DecisionOf[Any, Any] | CreationOf[Any, Any, Any]) -> Mapping[str, Any]:
    """Return the arguments of a command by name, after checking that it is made from this decision."""
    assert isinstance(command, DecisionCommand | CreationCommand)
    assert command.method is decision.method
    first = (None, None) if isinstance(command, DecisionCommand) else (None, None, None)
    return signature(command.method).bind(*first, *command.arguments, **command.keywords).arguments


def facts_of(events: list[DomainEvent]) -> list[Fact]:
    return [Fact(type(event), event.facts()) for event in events]


def collected(root: AggregateRoot) -> list[DomainEvent]:
    """Return the events of an aggregate since the last call."""
    return [event for event in root.collect_events() if isinstance(event, DomainEvent)]


def folded(events: list[DomainEvent], *, mapper: EventMapper = MAPPER, root: AggregateRoot | None = None) -> AggregateRoot | None:
    """The aggregate that the stored bytes of these events make, perhaps on top of an earlier state."""
    for event in events:
        stored = mapper.state(event)
        again = mapper.read(event.TOPIC, stream=event.originator_id, version=event.originator_version, state=stored)
        root = again.mutate(root)
    return root


@dataclass
class Outcome(Generic[R]):
    """The result of a command; `after` is the aggregate after it."""

    after: R | None
    happened: list[DomainEvent]
    refusal: DomainError | None

    def then(self, *expected: Fact) -> R:
        if self.refusal is not None:
            raise self.refusal
        assert facts_of(self.happened) == list(expected)
        assert self.after is not None
        return self.after

    def then_nothing(self) -> R:
        return self.then()

    def then_refused(self, kind: type[D]) -> D:
        assert type(self.refusal) is kind, f"{self.refusal!r}, {facts_of(self.happened)}"
        return self.refusal


@dataclass
class Scenario(Generic[R]):
    """An aggregate to which something has happened, or nothing yet."""

    kind: type[R]
    key: object
    history: list[DomainEvent]

    @property
    def root(self) -> R | None:
        root = folded(self.history)
        assert root is None or isinstance(root, self.kind)
        return root

    def when(self, command: Command[R], *, at: datetime = NOW) -> Outcome[R]:
        root = self.root
        try:
            after = command.decide(root, at=at)
        except DomainError as refusal:
            return Outcome(None, [], refusal)
        return Outcome(after, collected(after), None)


def given(kind: type[R], key: object, *history: Fact) -> Scenario[R]:
    stream = kind.stream(key)
    events = [
        entry.event(originator_id=stream, originator_version=version, timestamp=THEN, **entry.facts)
        for version, entry in enumerate(history, start=1)
    ]
    return Scenario(kind, key, events)
