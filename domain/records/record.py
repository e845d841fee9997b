"""Record: the one aggregate behind every simple resource. A resource is a *kind*: a name, its fields, what must be unique.

A kind's events are `<kind>.registered`, `.amended`, `.withdrawn` and `.reinstated`; only true changes are recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, Self

from pydantic import BaseModel, create_model
from pydantic.alias_generators import to_camel

from domain.kernel.aggregate import NO_CLAIMS, NO_LINKS, AggregateRoot, Claim
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound, Overtaken
from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.sealed import Sealed

_LONGEST_CLAIM = 600


class Record(AggregateRoot):
    """A thing with fields. A kind declares, in `kinds/`:

    `KIND` and `DETAILS`, its name and its fields; `UNIQUE`, the fields (or groups of fields) of which no two standing records have
    the same value; `LINKS`, the fields that point at other records, and their kinds; `PARENT`, the field by which records are
    listed, such as the owner's id.
    """

    DETAILS: ClassVar[type[BaseModel]]
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ()
    LINKS: ClassVar[Mapping[str, str]] = {}
    PARENT: ClassVar[str] = ""

    details: Any
    withdrawn: bool

    def begin(self) -> None:
        self.details = None
        self.withdrawn = False

    # --- deciding

    @classmethod
    def register(cls, key: object, values: Mapping[str, Any], *, at: datetime) -> Self:
        return cls._begin(cls._event(0), key, at, **cls._whole(values))

    def amend(self, changes: Mapping[str, Any], *, at: datetime) -> None:
        self._must_stand()
        settled = self.settled(changes, self.details)
        real = {name: value for name, value in settled.items() if value != getattr(self.details, name)}
        if real:
            self._trigger(self._event(1), at=at, **real)

    def withdraw(self, *, at: datetime) -> None:
        self._must_stand()
        self._trigger(self._event(2), at=at)

    def reinstate(self, values: Mapping[str, Any], *, at: datetime) -> None:
        """Somebody makes anew, under its old id, what was withdrawn. Nothing of what it was is left."""
        assert self.withdrawn, "only what was withdrawn comes back"
        self._trigger(self._event(3), at=at, **self._whole(values))

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        """What is to be kept of the values that a command brings, beside the details that are stored (None: there are none).
        A kind with a rule of its own has it here; it may refuse."""
        return values

    @classmethod
    def _whole(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values of a new record, which must have all that a record of its kind has."""
        needed = (name for name, field in cls.DETAILS.model_fields.items() if field.is_required())
        missing = [name for name in needed if values.get(name) is None]
        if missing:
            raise Malformed(*(FieldError(to_camel(name), "is required") for name in missing))
        return cls.settled(values, None)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.KIND:
            cls.EVENTS = _events(cls.KIND, cls.DETAILS)
            cls._event(0).AGGREGATE = cls

    @classmethod
    def _event(cls, index: int) -> Any:
        """0 registered, 1 amended, 2 withdrawn, 3 reinstated."""
        return cls.EVENTS[index]

    def _must_stand(self) -> None:
        if self.withdrawn:
            raise NotFound(self.KIND, self.key)

    # --- applying

    def _when_registered(self, event: DomainEvent) -> None:
        self.details = self.DETAILS.model_validate(event.facts())
        self.withdrawn = False

    _when_reinstated = _when_registered

    def _when_amended(self, event: DomainEvent) -> None:
        self.details = self.details.model_copy(update=event.facts())

    def _when_withdrawn(self, event: DomainEvent) -> None:
        self.withdrawn = True

    # --- holding

    def stands(self) -> bool:
        return not self.withdrawn

    def claims(self) -> frozenset[Claim]:
        if self.withdrawn or not self.UNIQUE:
            return NO_CLAIMS
        return frozenset(claim for names in self.UNIQUE if (claim := self._claim(names)) is not None)

    def _claim(self, names: str | tuple[str, ...]) -> Claim | None:
        if isinstance(names, str):
            value = getattr(self.details, names)
            return None if value is None else Claim(f"{self.KIND}.{names}", str(value), self.id)
        parts = [getattr(self.details, name) for name in names]
        text = json.dumps([None if part is None else str(part) for part in parts], ensure_ascii=False)
        # What is too long for an index entry is as unique by its digest.
        value = text if len(text) <= _LONGEST_CLAIM else sha256(text.encode()).hexdigest()
        return Claim(f"{self.KIND}.{'+'.join(names)}", value, self.id)

    def links(self) -> frozenset[str]:
        if self.withdrawn or not self.LINKS:
            return NO_LINKS
        pointed = ((kind, getattr(self.details, name)) for name, kind in self.LINKS.items())
        return frozenset(f"{kind}:{key}" for kind, key in pointed if key is not None)

    # --- remembering

    def snapshot(self) -> dict[str, Any]:
        return {
            "created_on": self.created_on.isoformat(),
            "modified_on": self.modified_on.isoformat(),
            "details": {"values": self.details.model_dump(mode="json"), "withdrawn": self.withdrawn},
        }

    def _restore(self, details: dict[str, Any]) -> None:
        self.details = self.DETAILS.model_validate(details["values"])
        self.withdrawn = details["withdrawn"]


def _events(kind: str, details: type[BaseModel]) -> tuple[type[DomainEvent], ...]:
    """The events of a kind, with their topics spelled out as stored. In an amendment every field may be absent."""
    title = kind.title().replace("_", "")
    optional: dict[str, Any] = {name: (field.annotation, None) for name, field in details.model_fields.items()}
    make: Any = create_model
    registered: type[DomainEvent] = make(f"{title}Registered", __base__=(FirstEvent, details))
    amended: type[DomainEvent] = make(f"{title}Amended", __base__=DomainEvent, **optional)
    withdrawn: type[DomainEvent] = make(f"{title}Withdrawn", __base__=DomainEvent)
    reinstated: type[DomainEvent] = make(f"{title}Reinstated", __base__=(DomainEvent, details))
    for event, verb in ((registered, "registered"), (amended, "amended"), (withdrawn, "withdrawn"), (reinstated, "reinstated")):
        event.TOPIC = f"{kind}.{verb}"
    return registered, amended, withdrawn, reinstated


@dataclass(frozen=True)
class _RecordCommand(Command[Record]):
    of: type[Record]

    def kind(self) -> type[Record]:
        return self.of


@dataclass(frozen=True)
class RegisterRecord(_RecordCommand):
    """Make a new record, or amend the one that has the key; one that was withdrawn is made anew."""

    values: Mapping[str, Any]
    new: bool = False
    sealed: Sequence[Sealed] = field(default=(), kw_only=True)

    @property
    def fresh(self) -> bool:
        return self.new

    def decide(self, root: Record | None, *, at: datetime) -> Record:
        if root is None:
            return self.of.register(self.key, self.values, at=at)
        if root.withdrawn:
            root.reinstate(self.values, at=at)
        else:
            root.amend(self.values, at=at)
        return root


@dataclass(frozen=True)
class _StandingRecordCommand(_RecordCommand):
    """`still` are details that were found in a look-up and that the command rests on; None: it rests on none, and the record was
    named by the caller. Nobody is told of a thing that they never named: what was found and is gone has been overtaken."""

    still: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def decide(self, root: Record | None, *, at: datetime) -> Record:
        if self.still is not None and (root is None or root.withdrawn or self._differs(root.details)):
            raise Overtaken(self.of.KIND, str(self.key))
        return super().decide(root, at=at)

    def _differs(self, details: Any) -> bool:
        return any(getattr(details, name) != value for name, value in (self.still or {}).items())


@dataclass(frozen=True)
class AmendRecord(_StandingRecordCommand):
    """Change the named fields of a record that exists."""

    changes: Mapping[str, Any]
    sealed: Sequence[Sealed] = field(default=(), kw_only=True)

    def act(self, root: Record, *, at: datetime) -> None:
        root.amend(self.changes, at=at)


@dataclass(frozen=True)
class WithdrawRecord(_StandingRecordCommand):
    """Take a record out of use. Its history stays."""

    def act(self, root: Record, *, at: datetime) -> None:
        root.withdraw(at=at)
