"""Queries of the record view, for records of any kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, LiteralString, NamedTuple

from pydantic import BaseModel

from domain.kernel.errors import NotFound
from domain.kernel.ports import Link
from domain.record.ports import HasName
from domain.record.ports import RecordRow as RecordRow
from domain.record.record import D, Record
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import Texts, texts
from projections.kernel.database.database import Database
from projections.kernel.database.page import LARGEST, ORDINARY, Page, Window, in_parts
from projections.kernel.sql.sequence import NumberSequence
from projections.kernel.sql.where import where

_USERS = """
SELECT split_part(l.owner, ':', 1), substr(l.owner, strpos(l.owner, ':') + 1), coalesce(e.title, r.name, '')
FROM links l
LEFT JOIN event_view e ON e.id = CASE WHEN l.owner LIKE 'event:%%' THEN substr(l.owner, 7)::uuid END
LEFT JOIN record_view r ON r.kind = split_part(l.owner, ':', 1) AND r.id = substr(l.owner, strpos(l.owner, ':') + 1)
WHERE l.target = ANY(%(targets)s) AND NOT l.owner = ANY(%(targets)s) ORDER BY l.owner LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class User:
    """An aggregate that refers to another one: its kind, id and name or title."""

    kind: str
    id: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.id} {self.name!r}"


class LinkUsers:
    """Finds the users of aggregates."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def users_of(self, streams: Sequence[str], *, limit: int = 5) -> list[User]:
        """Return the first few aggregates that refer to any of these streams. A stream is not its own user."""
        rows = await self._database.rows(_USERS, {"targets": list(streams), "limit": limit})
        return [User(kind, key, name) for kind, key, name in rows]


class ArchiverStreamNumbers(NumberSequence):
    """The sequence of archiver stream ids."""

    NAME: ClassVar[str] = "archiver_stream_numbers"


class Named(NamedTuple):
    """The details of a record of which only the name is read."""

    name: str


_COLUMNS = "SELECT kind, id, version, document, date_created, date_modified FROM record_view "
_AMONG = "JOIN unnest(%s::text[], %s::text[]) AS l(kind, id) USING (kind, id) WHERE NOT deleted"
_SHOWN_WHOLE = ["event_type", "category"]
_SHOWN = """
SELECT {by_name}, r.kind, r.id, r.version, CASE WHEN r.kind = ANY(%(whole)s::text[]) THEN r.document END, r.date_created,
    r.date_modified, coalesce(r.name, '')
FROM record_view r JOIN unnest({links}) AS l(kind, value) ON r.kind = l.kind AND r.{column} = l.value WHERE NOT r.deleted
"""
_SHOWN_BY_ID = _SHOWN.format(by_name="false", column="id", links="%(kinds)s::text[], %(ids)s::text[]")
_SHOWN_BY_NAME = _SHOWN.format(by_name="true", column="name", links="%(named)s::text[], %(names)s::text[]")
_SELECT = _COLUMNS + "WHERE NOT deleted AND "
BY_NAME: Final[LiteralString] = "name, id"
BY_CREATION: Final[LiteralString] = "date_created, id"
BY_NUMBER: Final[LiteralString] = "length(id), id"
"""The order of records whose ids are whole numbers."""
_ADDED_BY = """
SELECT count(*) FROM (
    SELECT FROM record_view r
    JOIN stream_events e ON e.stream = stream_key(r.kind || ':' || r.id) AND e.version = 1
    WHERE r.kind = %s AND NOT r.deleted AND e.metadata->>'actor' = %s LIMIT %s
) AS added
"""


class RecordQueries:
    """Finds records. Look-ups at the same moment share one query."""

    def __init__(self, database: Database, kinds: Iterable[type[Record]]) -> None:
        self._database = database
        self._details: Mapping[str, type[BaseModel]] = {kind.KIND: kind.DETAILS for kind in kinds}
        self._by_link = DataLoader[Link, RecordRow[Any]](self._load_linked)
        self._shown = DataLoader[tuple[Link, bool], RecordRow[HasName]](self._load_shown, lanes=1)

    async def shown(self, links: Iterable[Link]) -> dict[Link, RecordRow[HasName]]:
        """Return the targets of links, without missing ones. For most kinds only the name is read, since a document
        may be large."""
        targets, _ = await self.look_up(links, names=())
        return targets

    async def look_up(
        self, links: Iterable[Link], *, names: Iterable[Link]
    ) -> tuple[dict[Link, RecordRow[HasName]], dict[Link, RecordRow[HasName]]]:
        """Return the targets of links, as `shown` does, and records by their kinds and exact names, with one query."""
        keys = [(link, False) for link in dict.fromkeys(links)] + [(name, True) for name in dict.fromkeys(names)]
        rows = await self._shown.many(keys) if keys else {}
        targets = {link: row for (link, by_name), row in rows.items() if not by_name}
        return targets, {name: row for (name, by_name), row in rows.items() if by_name}

    async def _load_shown(self, keys: Sequence[tuple[Link, bool]]) -> dict[tuple[Link, bool], RecordRow[HasName]]:
        links, names = ([link for link, by_name in keys if by_name is named] for named in (False, True))
        kinds, ids = _ends(links)
        parameters: dict[str, Any] = {"whole": _SHOWN_WHOLE, "kinds": kinds, "ids": ids}
        if names:
            parameters["named"], parameters["names"] = _ends(names)
        rows = await self._database.rows(f"{_SHOWN_BY_ID} UNION ALL {_SHOWN_BY_NAME}" if names else _SHOWN_BY_ID, parameters)
        shown: dict[tuple[Link, bool], RecordRow[HasName]] = {}
        for by_name, *columns in rows:
            row = self._shown_row(columns)
            shown[((row.kind, row.details.name) if by_name else row.link), by_name] = row
        return shown

    async def of_kinds(self, kinds: Sequence[type[Record[D]]], keys: Iterable[object]) -> list[RecordRow[D]]:
        """Return records of several kinds by their ids. An id may belong to any of the kinds."""
        links = dict.fromkeys((kind.KIND, str(key)) for key in keys for kind in kinds)
        return list((await self._by_link.many(list(links))).values()) if links else []

    async def _load_linked(self, links: Sequence[Link]) -> dict[Link, RecordRow[Any]]:
        return {row.link: row for row in map(self._row, await self._database.rows(_COLUMNS + _AMONG, _ends(links)))}

    async def find(self, kind: type[Record[D]], key: object) -> RecordRow[D] | None:
        return await self._by_link((kind.KIND, str(key)))

    async def require(self, kind: type[Record[D]], key: object) -> RecordRow[D]:
        """Return the record. Raise `NotFound` if it does not exist."""
        record = await self.find(kind, key)
        if record is None:
            raise NotFound(kind.KIND, str(key))
        return record

    async def added_by(self, kind: type[Record], client: str, *, most: int) -> int:
        """Return the number of records of the kind that the client has added, counted up to `most`."""
        row = await self._database.row(_ADDED_BY, (kind.KIND, client, most))
        return int(row[0]) if row else 0

    async def by_reference(self, kind: type[Record[D]], reference_id: str) -> RecordRow[D] | None:
        """Return the most recently created record with this reference id, since reference ids are not unique."""
        order = " ORDER BY date_created DESC, id DESC LIMIT 1"
        rows = await self._database.rows(_SELECT + "kind = %s AND reference_id = %s" + order, (kind.KIND, reference_id))
        return self._row(rows[0]) if rows else None

    async def all(self, kind: type[Record[D]], *, without_parent: bool = False) -> list[RecordRow[D]]:
        """Return the records of a kind by name, for a caller that needs all `parts` together."""
        return [row async for part in self.parts(kind, without_parent=without_parent) for row in part]

    async def parts(
        self, kind: type[Record[D]], *, order: LiteralString = BY_NAME, without_parent: bool = False
    ) -> AsyncIterator[Sequence[RecordRow[D]]]:
        """Yield the records of a kind, however many and large, in parts that are read when the previous part was consumed.

        `without_parent` leaves out records that belong to another record. A list that fits into one part takes one statement.
        """
        of_none = " AND parent IS NULL" if without_parent else ""
        condition = f"kind = '{kind.KIND}'{of_none}"  # a literal, so that an index of webhooks is used
        rows = await self._database.lists.rows(_begun(condition, order=order), {"bytes": ORDINARY, "most": LARGEST})
        begun = sum(row[3] is not None for row in rows)
        yield [self._row(row[:-1]) for row in rows[:begun]]
        rest = [((kind.KIND, row[1]), row[-1]) for row in rows[begun:]]
        del rows
        for links in in_parts(rest):
            read = await self._database.lists.rows(_COLUMNS + _AMONG, _ends(links))
            rows_by_link = {row.link: row for row in map(self._row, read)}
            yield [rows_by_link[link] for link in links if link in rows_by_link]

    async def of_parent(self, kind: type[Record[D]], parent: object) -> list[RecordRow[D]]:
        """Return the records of a kind that belong to one parent, in no order."""
        rows = await self._database.rows(_SELECT + "kind = %s AND parent = %s", (kind.KIND, str(parent)))
        return [self._row(row) for row in rows]

    async def page(self, kind: type[Record[D]], *, parent: str | None, window: Window, descending: bool) -> Page[RecordRow[D]]:
        """Return the records of a kind, of one parent if given, by their creation."""
        conditions, named = where([("kind", kind.KIND, "kind = %(kind)s"), ("parent", parent, "parent = %(parent)s")])
        condition, way = " AND ".join(["NOT deleted", *conditions]), "DESC" if descending else "ASC"
        rows, total = await self._database.lists.page(
            f"{_COLUMNS} WHERE {condition} ORDER BY date_created {way}, id {way} LIMIT %(limit)s OFFSET %(offset)s",
            f"SELECT count(*) FROM record_view WHERE {condition}",
            content=("document",),
            parameters={**named, "limit": window.limit, "offset": window.offset},
        )
        return Page(window.limit, total, [self._row(row) for row in rows])

    async def ever_of_parent(self, kind: type[Record], parent: object) -> list[str]:
        """Return the ids of all records of a kind that belong or belonged to one parent. Reading a past state starts from them."""
        rows = await self._database.rows("SELECT id FROM record_view WHERE kind = %s AND parent = %s", (kind.KIND, str(parent)))
        return [key for (key,) in rows]

    async def named(self, kind: type[Record], names: Iterable[str]) -> dict[str, RecordRow[HasName]]:
        """Return records of a kind by their exact names. If several have one name, any of them is returned."""
        _, rows = await self.look_up((), names=[(kind.KIND, name) for name in names])
        return {name: row for (_, name), row in rows.items()}

    async def by_ids(self, kind: type[Record[D]], keys: Iterable[object]) -> list[RecordRow[D]]:
        """Return records of a kind by their ids, in the order of the ids. Unknown ids are left out."""
        links = [(kind.KIND, str(key)) for key in keys]
        rows = await self._by_link.many(list(dict.fromkeys(links))) if links else {}
        return [rows[link] for link in links if link in rows]

    def _shown_row(self, row: Sequence[Any]) -> RecordRow[HasName]:
        *columns, name = row
        if columns[3] is not None:
            return self._row(columns)
        kind, key, version, _, created, modified = columns
        return RecordRow(kind, key, version, Named(name), created, modified)

    def _row(self, row: Sequence[Any]) -> RecordRow[Any]:
        """Return a row with the details of its own kind."""
        kind, key, version, document, created, modified = row
        return RecordRow(kind, key, version, self._details[kind].model_validate_json(document), created, modified)


def _begun(condition: str, *, order: str) -> str:
    """Return a query for the records of a list in their order, with the bytes of each. Records after the first `bytes` or the first
    `most` lack their document."""
    return f"""
SELECT kind, id, version, CASE WHEN number <= %(most)s AND until <= %(bytes)s THEN document END, date_created, date_modified, size
FROM (
    SELECT *, octet_length(document) AS size, row_number() OVER listed AS number, sum(octet_length(document)) OVER listed AS until
    FROM record_view WHERE NOT deleted AND {condition} WINDOW listed AS (ORDER BY {order})
) AS list ORDER BY {order}
"""


def _ends(links: Sequence[Link]) -> tuple[Texts, Texts]:
    return texts([kind for kind, _ in links]), texts([key for _, key in links])
