"""Records at present or at any position of the log, through one port, so that responses are made from both in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from domain.kernel.ports import Link
from domain.record.kinds.custom_property import CustomProperty, P
from domain.record.ports import HasName, RecordReader, RecordRow
from domain.record.record import D, Record
from projections.log.streams import Streams
from projections.record.queries import RecordQueries


class OwnedRecords(Protocol):
    """Custom properties by their owner."""

    async def of_owners(self, kind: type[CustomProperty[P]], owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow[P]]]: ...

    async def ever_of_owner(self, kind: type[CustomProperty], owner: object) -> Sequence[str]:
        """Return the ids of all properties that the owner has or had."""
        ...


class RecordHistory:
    """Readers of records: `at(None)` reads the views, `at(position)` the log."""

    def __init__(self, streams: Streams, records: RecordQueries, *, properties: OwnedRecords) -> None:
        self._streams = streams
        self._records = records
        self._properties = properties
        self._present = _Present(records, properties)

    def at(self, position: int | None) -> RecordReader:
        if position is None:
            return self._present
        return _Past(self._streams, position, records=self._records, properties=self._properties)


class _Present:
    def __init__(self, records: RecordQueries, properties: OwnedRecords) -> None:
        self.shown = records.shown
        self.find = records.find
        self.by_ids = records.by_ids
        self.of_parent = records.of_parent
        self.of_owners = properties.of_owners


class _Past:
    """Reads the log. The views tell which records a parent or owner has or had."""

    def __init__(self, streams: Streams, position: int, *, records: RecordQueries, properties: OwnedRecords) -> None:
        self._streams = streams
        self._position = position
        self._records = records
        self._properties = properties

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow[HasName]]:
        roots = await self._streams.as_of([f"{kind}:{key}" for kind, key in dict.fromkeys(links)], self._position)
        rows = [RecordRow.of(root) for root in roots.values() if isinstance(root, Record) and not root.deleted]
        return {row.link: row for row in rows}

    async def find(self, kind: type[Record[D]], key: object) -> RecordRow[D] | None:
        return next(iter(await self.by_ids(kind, [key])), None)

    async def by_ids(self, kind: type[Record[D]], keys: Iterable[object]) -> Sequence[RecordRow[D]]:
        streams = [kind.stream(key) for key in keys]
        roots = await self._streams.as_of(list(dict.fromkeys(streams)), self._position)
        found = [roots[stream] for stream in streams if stream in roots]
        return [RecordRow.of(root) for root in found if isinstance(root, kind) and not root.deleted]

    async def of_parent(self, kind: type[Record[D]], parent: object) -> Sequence[RecordRow[D]]:
        rows = await self.by_ids(kind, await self._records.ever_of_parent(kind, parent))
        return [row for row in rows if str(getattr(row.details, kind.PARENT)) == str(parent)]

    async def of_owners(self, kind: type[CustomProperty[P]], owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow[P]]]:
        return {str(owner): rows for owner in owners if (rows := await self._of_owner(kind, owner))}

    async def _of_owner(self, kind: type[CustomProperty[P]], owner: object) -> list[RecordRow[P]]:
        rows = await self.by_ids(kind, await self._properties.ever_of_owner(kind, owner))
        return sorted(rows, key=lambda row: (row.details.category, row.details.key))
