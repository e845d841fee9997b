"""Ports of the handlers of records: look-ups and numbers. Responses read present or past records through `RecordReader`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.kernel.ports import Link
from domain.record.record import Record


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as a look-up returns it. `details` is the kind's own model."""

    kind: str
    id: str
    version: int
    details: Any
    date_created: datetime
    date_modified: datetime

    @classmethod
    def of(cls, record: Record) -> RecordRow:
        return cls(record.KIND, record.key, record.version, record.details, record.created_on, record.modified_on)

    @property
    def link(self) -> tuple[str, str]:
        return self.kind, self.id


class RecordReader(Protocol):
    """Reads records of any kind, at present or at any position of the log. Records that do not exist or are deleted are left
    out."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow]:
        """Return the targets of links. For most kinds only the name is read, because a document may be large."""
        ...

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def by_ids(self, kind: str, keys: Iterable[object]) -> Sequence[RecordRow]:
        """Return the records with these ids, in their order."""
        ...

    async def of_parent(self, kind: str, parent: object) -> Sequence[RecordRow]:
        """Return the records of a parent, in no particular order."""
        ...

    async def of_owners(self, kind: str, owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow]]:
        """Return custom properties by their owner's id, each list sorted by category and key."""
        ...


class RecordLookup(Protocol):
    """Finds present records for handlers, before they decide."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow]: ...

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def by_ids(self, kind: str, keys: Iterable[object]) -> Sequence[RecordRow]: ...

    async def named(self, kind: str, names: Iterable[str]) -> Mapping[str, RecordRow]:
        """Return records by their complete, exact names."""
        ...

    async def of_parent(self, kind: str, parent: object) -> Sequence[RecordRow]: ...


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
    """Finds present custom properties. `kind` is the kind of the property, such as `category_property`."""

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def of_owner(self, kind: str, owner: object) -> Sequence[RecordRow]:
        """Return the properties of an owner, sorted by category and key."""
        ...

    async def matching(self, kind: str, wanted: PropertyFilter) -> Sequence[RecordRow]:
        """Return the properties that match every part of the filter."""
        ...


class Numbers(Protocol):
    """A sequence of numbers for new records. No number is drawn twice."""

    async def draw(self) -> int: ...
