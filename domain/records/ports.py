"""Ports of the handlers of records: look-ups, numbers. Responses read records through `RecordReader`, present or past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.kernel.links import Link
from domain.records.row import RecordRow


class RecordReader(Protocol):
    """Records of any kind, at present or at any position of the log. One that does not exist, or is deleted, is not in a result."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow]:
        """The targets of links. Of most kinds only the name: a document may be large."""
        ...

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def those(self, kind: str, keys: Iterable[object]) -> Sequence[RecordRow]:
        """In the order of the keys."""
        ...

    async def of_parent(self, kind: str, parent: object) -> Sequence[RecordRow]:
        """In no order."""
        ...

    async def of_owners(self, kind: str, owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow]]:
        """Custom properties by their owner's id, each list by category and key."""
        ...


class RecordLookup(Protocol):
    """Records as handlers look them up before they decide: always the present."""

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow]: ...

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def those(self, kind: str, keys: Iterable[object]) -> Sequence[RecordRow]: ...

    async def named(self, kind: str, names: Iterable[str]) -> Mapping[str, RecordRow]:
        """By whole, exact names."""
        ...

    async def of_parent(self, kind: str, parent: object) -> Sequence[RecordRow]: ...


@dataclass(frozen=True, kw_only=True)
class PropertyFilter:
    """A filter of custom properties. Each value that is given must be equal; an empty text finds only empty texts."""

    owner_id: str | None = None
    category: str | None = None
    key: str | None = None
    value: str | None = None

    @property
    def empty(self) -> bool:
        return self.owner_id is self.category is self.key is self.value is None


class PropertyLookup(Protocol):
    """Custom properties at present. `kind` is that of the property, such as `category_property`."""

    async def find(self, kind: str, key: object) -> RecordRow | None: ...

    async def of_owner(self, kind: str, owner: object) -> Sequence[RecordRow]:
        """By category and key."""
        ...

    async def matching(self, kind: str, wanted: PropertyFilter) -> Sequence[RecordRow]:
        """The properties that match every part of the filter."""
        ...


class Numbers(Protocol):
    """A sequence of numbers for new records. None is given twice."""

    async def draw(self) -> int: ...
