"""Ports of the handlers of records: look-ups and numbers. Responses read present or past records through `RecordReader`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, cast

from typing_extensions import TypeVar

from domain.kernel.ports import Link
from domain.record.kinds.custom_property import CustomProperty, P
from domain.record.record import D, Record

T_co = TypeVar("T_co", covariant=True, default=object)
"""The details of a record, or of several kinds of records."""


class HasName(Protocol):
    """The details of a record of which only the name is read."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RecordRow(Generic[T_co]):
    """A record as a look-up returns it. `details` is the kind's own model."""

    kind: str
    id: str
    version: int
    details: T_co
    date_created: datetime
    date_modified: datetime

    @classmethod
    def of(cls, record: Record[D]) -> RecordRow[D]:
        return RecordRow(record.KIND, record.key, record.version, record.details, record.created_on, record.modified_on)

    def whole(self, kind: type[Record[D]]) -> RecordRow[D]:
        """Return this row as a row of its kind, whose details were read whole."""
        assert isinstance(self.details, kind.DETAILS)
        return cast("RecordRow[D]", self)

    @property
    def link(self) -> tuple[str, str]:
        return self.kind, self.id


class RecordReader(Protocol):
    """Reads records of any kind, at present or at any position of the log. Records that do not exist or are deleted are left
    out."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow[HasName]]:
        """Return the targets of links. For most kinds only the name is read, because a document may be large."""
        ...

    async def find(self, kind: type[Record[D]], key: object) -> RecordRow[D] | None: ...

    async def by_ids(self, kind: type[Record[D]], keys: Iterable[object]) -> Sequence[RecordRow[D]]:
        """Return the records with these ids, in their order."""
        ...

    async def of_parent(self, kind: type[Record[D]], parent: object) -> Sequence[RecordRow[D]]:
        """Return the records of a parent, in no particular order."""
        ...

    async def of_owners(self, kind: type[CustomProperty[P]], owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow[P]]]:
        """Return custom properties by their owner's id, each list sorted by category and key."""
        ...


class RecordLookup(Protocol):
    """Finds present records for handlers, before they decide."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow[HasName]]: ...

    async def find(self, kind: type[Record[D]], key: object) -> RecordRow[D] | None: ...

    async def by_ids(self, kind: type[Record[D]], keys: Iterable[object]) -> Sequence[RecordRow[D]]: ...

    async def look_up(
        self, links: Iterable[Link], *, names: Iterable[Link]
    ) -> tuple[Mapping[Link, RecordRow[HasName]], Mapping[Link, RecordRow[HasName]]]:
        """Return the targets of links, as `shown` does, and records by their kinds and complete, exact names."""
        ...

    async def named(self, kind: type[Record], names: Iterable[str]) -> Mapping[str, RecordRow[HasName]]:
        """Return records of a kind by their complete, exact names."""
        ...

    async def of_parent(self, kind: type[Record[D]], parent: object) -> Sequence[RecordRow[D]]: ...


@dataclass(frozen=True, kw_only=True)
class PropertyFilter:
    """A filter of custom properties. Each given value must be equal; an empty text matches only empty texts."""

    owner_id: str | None = None
    category: str | None = None
    key: str | None = None
    value: str | None = None

    @property
    def empty(self) -> bool:
        return self.owner_id is self.category is self.key is self.value is None


class PropertyLookup(Protocol):
    """Finds present custom properties. `kind` is the kind of the property, such as `CategoryProperty`."""

    async def find(self, kind: type[CustomProperty[P]], key: object) -> RecordRow[P] | None: ...

    async def of_owner(self, kind: type[CustomProperty[P]], owner: object) -> Sequence[RecordRow[P]]:
        """Return the properties of an owner, sorted by category and key."""
        ...

    async def matching(self, kind: type[CustomProperty[P]], wanted: PropertyFilter) -> Sequence[RecordRow[P]]:
        """Return the properties that match every part of the filter."""
        ...


class Numbers(Protocol):
    """A sequence of numbers for new records. No number is drawn twice."""

    async def draw(self) -> int: ...
