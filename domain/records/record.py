"""Record: the one aggregate behind every simple resource. A resource is a *kind*: a name, its fields, what must be unique.

A kind's events are `<kind>.registered`, `<kind>.amended` and `<kind>.withdrawn`; only true changes are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from pydantic import BaseModel, create_model

from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.command import Command
from domain.kernel.errors import NotFound
from domain.kernel.event import DomainEvent, FirstEvent


class Record(AggregateRoot):
    """A named thing with fields. Subclasses are declared in `kinds/` and hold no logic."""

    DETAILS: ClassVar[type[BaseModel]]
    UNIQUE: ClassVar[tuple[str, ...]] = ()

    details: Any
    withdrawn: bool

    def begin(self) -> None:
        self.details = None
        self.withdrawn = False

    @classmethod
    def register(cls, key: object, values: Mapping[str, Any], *, at: datetime) -> Self:
        return cls._begin(cls._event(0), key=key, at=at, **values)

    def amend(self, changes: Mapping[str, Any], *, at: datetime) -> None:
        self._must_stand()
        real = {name: value for name, value in changes.items() if value != getattr(self.details, name)}
        if real:
            self._trigger(self._event(1), at=at, **real)

    def withdraw(self, *, at: datetime) -> None:
        self._must_stand()
        self._trigger(self._event(2), at=at)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._event(0).AGGREGATE = cls

    @classmethod
    def _event(cls, index: int) -> Any:
        """0 registered, 1 amended, 2 withdrawn."""
        return cls.EVENTS[index]

    def _must_stand(self) -> None:
        if self.withdrawn:
            raise NotFound(self.KIND, self.key)

    def _when_registered(self, event: FirstEvent) -> None:
        self.details = self.DETAILS.model_validate(event.facts())

    def _when_amended(self, event: DomainEvent) -> None:
        self.details = self.details.model_copy(update=event.facts())

    def _when_withdrawn(self, event: DomainEvent) -> None:
        self.withdrawn = True

    def claims(self) -> frozenset[Claim]:
        if self.withdrawn or not self.UNIQUE:
            return NO_CLAIMS
        values = ((name, getattr(self.details, name)) for name in self.UNIQUE)
        return frozenset(Claim(f"{self.KIND}.{name}", str(value), self.id) for name, value in values if value is not None)

    def snapshot(self) -> dict[str, Any]:
        return {
            "created_on": self.created_on.isoformat(),
            "modified_on": self.modified_on.isoformat(),
            "details": {"values": self.details.model_dump(mode="json"), "withdrawn": self.withdrawn},
        }

    def _restore(self, details: dict[str, Any]) -> None:
        self.details = self.DETAILS.model_validate(details["values"])
        self.withdrawn = details["withdrawn"]


def record_events(kind: str, details: type[BaseModel]) -> tuple[type[DomainEvent], ...]:
    """The three events of a kind, with their topics spelled out as stored. In an amendment every field may be absent."""
    title = kind.title().replace("_", "")
    optional: dict[str, Any] = {name: (field.annotation, None) for name, field in details.model_fields.items()}
    make: Any = create_model
    registered: type[DomainEvent] = make(f"{title}Registered", __base__=(FirstEvent, details))
    amended: type[DomainEvent] = make(f"{title}Amended", __base__=DomainEvent, **optional)
    withdrawn: type[DomainEvent] = make(f"{title}Withdrawn", __base__=DomainEvent)
    for event, verb in ((registered, "registered"), (amended, "amended"), (withdrawn, "withdrawn")):
        event.TOPIC = f"{kind}.{verb}"
    return registered, amended, withdrawn


@dataclass(frozen=True)
class _RecordCommand(Command[Record]):
    of: type[Record]

    def kind(self) -> type[Record]:
        return self.of


@dataclass(frozen=True)
class RegisterRecord(_RecordCommand):
    """Make a new record, or amend the one that has the key."""

    values: Mapping[str, Any]
    new: bool = False

    @property
    def fresh(self) -> bool:
        return self.new

    def decide(self, root: Record | None, *, at: datetime) -> Record:
        if root is not None:
            return super().decide(root, at=at)
        return self.of.register(self.key, self.values, at=at)

    def act(self, root: Record, *, at: datetime) -> None:
        root.amend(self.values, at=at)


@dataclass(frozen=True)
class AmendRecord(_RecordCommand):
    """Change the named fields of a record that exists."""

    changes: Mapping[str, Any]

    def act(self, root: Record, *, at: datetime) -> None:
        root.amend(self.changes, at=at)


@dataclass(frozen=True)
class WithdrawRecord(_RecordCommand):
    """Take a record out of use. Its history stays."""

    def act(self, root: Record, *, at: datetime) -> None:
        root.withdraw(at=at)
