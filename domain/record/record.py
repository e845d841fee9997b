"""Record: the aggregate of all simple resources. A resource is a *kind*: a name, fields, and the fields that are unique.

A kind's events are `<kind>.registered`, `.amended`, `.deleted` and `.restored`. A command that changes nothing results in no event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, Generic, NamedTuple, Self, get_args

from pydantic import BaseModel, create_model
from pydantic.alias_generators import to_camel
from typing_extensions import TypeVar

from domain.kernel.aggregate import NO_CLAIMS, NO_LINKS, AggregateRoot, Claim
from domain.kernel.command import Command, decision
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import FieldError, Malformed, NotFound, PlanOutdated
from domain.kernel.event import DomainEvent, FirstEvent

D = TypeVar("D", bound=BaseModel, default=BaseModel)
D_co = TypeVar("D_co", bound=BaseModel, covariant=True, default=BaseModel)
"""The fields of a kind."""

_LONGEST_CLAIM = 600


class RecordEvents(NamedTuple):
    """The events of a kind."""

    registered: type[FirstEvent]
    amended: type[DomainEvent]
    deleted: type[DomainEvent]
    restored: type[DomainEvent]


class Record(AggregateRoot, Generic[D_co]):
    """A record with fields. A kind derives from `Record[Details]`, where `Details` is the model of its fields, and declares:

    `KIND`, its name; `UNIQUE`, the fields (or groups of fields) whose values no two records that are not deleted share; `LINKS`,
    the fields that refer to other records, and their kinds; `PARENT`, the field by which records are listed, such as the owner's
    id.
    """

    EVENTS: ClassVar[RecordEvents]
    DETAILS: ClassVar[type[BaseModel]] = BaseModel
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ()
    LINKS: ClassVar[Mapping[str, str]] = {}
    PARENT: ClassVar[str] = ""

    details: D_co
    deleted: bool

    def begin(self) -> None:
        self.deleted = False

    # --- decisions

    @classmethod
    def register(cls, key: object, at: datetime, /, values: Mapping[str, Any]) -> Self:
        return cls._begin(cls.EVENTS.registered, key, at, **cls._whole(values))

    @decision
    def amend(self, at: datetime, /, changes: Mapping[str, Any], *, still: Mapping[str, Any] | None = None) -> None:
        """Change the named fields. `still` are details that a plan has read and that must not have changed since; otherwise the
        plan is made again."""
        self._check_not_deleted(still)
        settled = self.prepare_values(changes, self.details)
        real = {name: value for name, value in settled.items() if value != getattr(self.details, name)}
        if real:
            self._trigger(self.EVENTS.amended, at=at, **real)

    @decision
    def delete(self, at: datetime, /, *, still: Mapping[str, Any] | None = None) -> None:
        """Delete the record; its history stays. `still` is as in `amend`."""
        self._check_not_deleted(still)
        self._trigger(self.EVENTS.deleted, at=at)

    @decision
    def restore(self, at: datetime, /, values: Mapping[str, Any]) -> None:
        """Register a deleted record again under its id. None of its old values is kept."""
        assert self.deleted, "only a deleted record can be restored"
        self._trigger(self.EVENTS.restored, at=at, **self._whole(values))

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        """Return the values of a command as they will be stored. `stored` has the present details, None for a new record.

        A kind overrides this to apply its own rules, and may refuse.
        """
        return values

    @classmethod
    def _whole(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values of a new record, which must have all required fields."""
        needed = (name for name, field in cls.DETAILS.model_fields.items() if field.is_required())
        missing = [name for name in needed if values.get(name) is None]
        if missing:
            raise Malformed(*(FieldError(to_camel(name), "is required") for name in missing))
        return cls.prepare_values(values, None)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            cls.DETAILS = next((details for details in get_args(base) if isinstance(details, type)), cls.DETAILS)
        if cls.KIND:
            cls.EVENTS = _events(cls.KIND, cls.DETAILS)
            cls.EVENTS.registered.AGGREGATE = cls

    def _check_not_deleted(self, still: Mapping[str, Any] | None = None) -> None:
        if still is not None and (self.deleted or any(getattr(self.details, name) != value for name, value in still.items())):
            raise PlanOutdated(self.KIND, self.key)
        if self.deleted:
            raise NotFound(self.KIND, self.key)

    # --- state

    def _when_registered(self, event: DomainEvent) -> None:
        self.details = self._details(event.facts())
        self.deleted = False

    _when_restored = _when_registered

    @classmethod
    def _details(cls, values: Mapping[str, Any]) -> Any:
        return cls.DETAILS.model_validate(values)

    def _when_amended(self, event: DomainEvent) -> None:
        self.details = self.details.model_copy(update=event.facts())

    def _when_deleted(self, event: DomainEvent) -> None:
        self.deleted = True

    # --- references

    def linkable(self) -> bool:
        return not self.deleted

    def claims(self) -> frozenset[Claim]:
        if self.deleted or not self.UNIQUE:
            return NO_CLAIMS
        return frozenset(claim for names in self.UNIQUE if (claim := self._claim(names)) is not None)

    def _claim(self, names: str | tuple[str, ...]) -> Claim | None:
        if isinstance(names, str):
            value = getattr(self.details, names)
            return None if value is None else Claim(f"{self.KIND}.{names}", str(value), self.id)
        parts = [getattr(self.details, name) for name in names]
        text = json.dumps([None if part is None else str(part) for part in parts], ensure_ascii=False)
        # A value that is too long for an index entry is replaced by its digest, which is as unique.
        value = text if len(text) <= _LONGEST_CLAIM else sha256(text.encode()).hexdigest()
        return Claim(f"{self.KIND}.{'+'.join(names)}", value, self.id)

    def links(self) -> frozenset[str]:
        if self.deleted or not self.LINKS:
            return NO_LINKS
        targets = ((kind, getattr(self.details, name)) for name, kind in self.LINKS.items())
        return frozenset(f"{kind}:{key}" for kind, key in targets if key is not None)

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        return {"values": self.details.model_dump(mode="json"), "deleted": self.deleted}

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        self.details = self._details(details["values"])
        self.deleted = details["deleted"]


def _events(kind: str, details: type[BaseModel]) -> RecordEvents:
    """Return the events of a kind, with their topics. In an amendment every field may be absent."""
    title = kind.title().replace("_", "")
    optional: dict[str, Any] = {name: (field.annotation, None) for name, field in details.model_fields.items()}
    make: Any = create_model
    registered: type[FirstEvent] = make(f"{title}Registered", __base__=(FirstEvent, details))
    amended: type[DomainEvent] = make(f"{title}Amended", __base__=DomainEvent, **optional)
    deleted: type[DomainEvent] = make(f"{title}Deleted", __base__=DomainEvent)
    restored: type[DomainEvent] = make(f"{title}Restored", __base__=(DomainEvent, details))
    for event, verb in ((registered, "registered"), (amended, "amended"), (deleted, "deleted"), (restored, "restored")):
        event.TOPIC = f"{kind}.{verb}"
    restored.STANDS_EMPTY = True
    return RecordEvents(registered, amended, deleted, restored)


@dataclass(frozen=True)
class RegisterRecord(Command[Record[D]], Generic[D]):
    """Add a record, or amend the one that has the key. A deleted record is restored with these values."""

    of: type[Record[D]]
    values: Mapping[str, Any]
    new: bool = False
    sealed: Sequence[EncryptedSecret] = field(default=(), kw_only=True)

    def kind(self) -> type[Record[D]]:
        return self.of

    @property
    def creates(self) -> bool:
        return self.new

    def decide(self, root: Record[D] | None, *, at: datetime) -> Record[D]:
        if root is None:
            return self.of.register(self.key, at, self.values)
        if root.deleted:
            root.restore(at, self.values)
        else:
            root.amend(at, self.values)
        return root
