"""Records at present or at any position of the log, through one port, so that responses are made from both in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from domain.kernel.ports import Link
from domain.record.ports import RecordReader, RecordRow
from domain.record.record import Record
from projections.log.streams import Streams
from projections.record.queries import RecordQueries


class OwnedRecords(Protocol):
    """Custom properties by their owner."""

    async def of_owners(self, kind: str, owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow]]: ...

    async def ever_of_owner(self, kind: str, owner: object) -> Sequence[str]:
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

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow]:
        return {row.link: row for row in await self._rows(f"{kind}:{key}" for kind, key in links)}

    async def find(self, kind: str, key: object) -> RecordRow | None:
        return next(iter(await self._rows([f"{kind}:{key}"])), None)

    async def by_ids(self, kind: str, keys: Iterable[object]) -> Sequence[RecordRow]:
        links = [(kind, str(key)) for key in keys]
        rows = await self.shown(links)
        return [rows[link] for link in links if link in rows]

    async def of_parent(self, kind: str, parent: object) -> Sequence[RecordRow]:
        ever = await self._records.ever_of_parent(kind, parent)
        records = await self._records_of(f"{kind}:{key}" for key in ever)
        return [RecordRow.of(record) for record in records if str(getattr(record.details, record.PARENT)) == str(parent)]

    async def of_owners(self, kind: str, owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow]]:
        return {str(owner): rows for owner in owners if (rows := await self._of_owner(kind, owner))}

    async def _of_owner(self, kind: str, owner: object) -> list[RecordRow]:
        ever = await self._properties.ever_of_owner(kind, owner)
        return sorted(await self._rows(f"{kind}:{key}" for key in ever), key=lambda row: (row.details.category, row.details.key))

    async def _rows(self, streams: Iterable[str]) -> list[RecordRow]:
        return [RecordRow.of(record) for record in await self._records_of(streams)]

    async def _records_of(self, streams: Iterable[str]) -> list[Record]:
        roots = await self._streams.as_of(list(dict.fromkeys(streams)), self._position)
        return [root for root in roots.values() if isinstance(root, Record) and not root.deleted]
