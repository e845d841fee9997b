"""Questions about simple records of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel

from domain.kernel.errors import NotFound
from domain.media_event.links import Link
from domain.records.record import Record
from projections.kernel.coalesce import Coalesced
from projections.kernel.database import Database
from projections.kernel.page import Page, Window
from projections.kernel.where import where


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as it stands: `details` is the kind's own model."""

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
    def link(self) -> Link:
        return self.kind, self.id


class Named(NamedTuple):
    """The details of a record of which no more is needed."""

    name: str


_COLUMNS = "SELECT kind, id, version, document, date_created, date_modified FROM record_view "
_AMONG = "JOIN unnest(%s::text[], %s::text[]) AS l(kind, id) USING (kind, id) WHERE NOT withdrawn"
_SHOWN_WHOLE = ["event_type", "category"]
_SHOWN = (
    "SELECT kind, id, version, CASE WHEN kind = ANY(l.whole) THEN document END, date_created, date_modified, coalesce(name, '') "
    "FROM record_view JOIN (SELECT u.kind, u.id, %s::text[] AS whole FROM unnest(%s::text[], %s::text[]) AS u(kind, id)) AS l "
    "USING (kind, id) WHERE NOT withdrawn"
)
_SELECT = _COLUMNS + "WHERE NOT withdrawn AND "


class RecordQueries:
    """All reads of the record view. Records and names asked for in the same moment share one query."""

    def __init__(self, database: Database, kinds: Iterable[type[Record]]) -> None:
        self._database = database
        self._details: Mapping[str, type[BaseModel]] = {kind.KIND: kind.DETAILS for kind in kinds}
        self._by_link = Coalesced[Link, RecordRow](self._linked)
        self._shown = Coalesced[Link, RecordRow](self._those_shown)
        self._by_name = Coalesced[tuple[str, str], RecordRow](self._named)

    async def shown(self, links: Iterable[Link]) -> dict[Link, RecordRow]:
        """The records that something points at, as far as it shows them: of most kinds the name alone, without a document that may
        be large. One that is absent is not in the answer."""
        wanted = dict.fromkeys(links)
        return await self._shown.many(list(wanted)) if wanted else {}

    async def _those_shown(self, links: Sequence[Link]) -> dict[Link, RecordRow]:
        rows = await self._database.rows(_SHOWN, (_SHOWN_WHOLE, *_ends(links)))
        return {row.link: row for row in map(self._shown_row, rows)}

    async def linked(self, links: Iterable[Link]) -> dict[Link, RecordRow]:
        """The records that something points at; one that is absent is not in the answer."""
        wanted = dict.fromkeys(links)
        return await self._by_link.many(list(wanted)) if wanted else {}

    async def _linked(self, links: Sequence[Link]) -> dict[Link, RecordRow]:
        return {row.link: row for row in map(self._row, await self._database.rows(_COLUMNS + _AMONG, _ends(links)))}

    async def find(self, kind: str, key: object) -> RecordRow | None:
        return await self._by_link((kind, str(key)))

    async def known(self, kind: str, key: object) -> RecordRow:
        """The record, or `NotFound`."""
        found = await self.find(kind, key)
        if found is None:
            raise NotFound(kind, str(key))
        return found

    async def by_reference(self, kind: str, reference_id: str) -> RecordRow | None:
        """Reference ids are not unique: the most recently created record that has this one."""
        order = " ORDER BY date_created DESC, id DESC LIMIT 1"
        rows = await self._database.rows(_SELECT + "kind = %s AND reference_id = %s" + order, (kind, reference_id))
        return self._row(rows[0]) if rows else None

    async def all(self, kind: str) -> list[RecordRow]:
        """By name."""
        return await self._rows(_SELECT + "kind = %s ORDER BY name, id", kind)

    async def of_parent(self, kind: str, parent: object) -> list[RecordRow]:
        """The standing records of a kind that belong to one parent, in no order."""
        return await self._rows(_SELECT + "kind = %s AND parent = %s", kind, str(parent))

    async def without_parent(self, kind: str) -> list[RecordRow]:
        """The standing records of a kind that belong to no parent, in no order."""
        return await self._rows(_SELECT + "kind = %s AND parent IS NULL", kind)

    async def page_of_parents(
        self, kind: str, beginning: str, *, parent: str | None, window: Window, descending: bool
    ) -> Page[RecordRow]:
        """The standing records of a kind that belong to one parent, or (None) to any whose name begins so, by the time when they
        were made."""
        parts = [("parent", parent, "parent = %(parent)s"), ("beginning", beginning, "starts_with(parent, %(beginning)s)")]
        conditions, named = where([("kind", kind, "kind = %(kind)s"), *parts])
        found, way = " AND ".join(["NOT withdrawn", *conditions]), "DESC" if descending else "ASC"
        rows, total = await self._database.page(
            f"{_COLUMNS} WHERE {found} ORDER BY date_created {way}, id {way} LIMIT %(limit)s OFFSET %(offset)s",
            f"SELECT count(*) FROM record_view WHERE {found}",
            parameters={**named, "limit": window.limit, "offset": window.offset},
        )
        return Page(window.limit, total, [self._row(row) for row in rows])

    async def ever_of_parent(self, kind: str, parent: object) -> list[str]:
        """Ids of all records of a kind that belong or ever belonged to one parent: where to look for how it stood once."""
        rows = await self._database.rows("SELECT id FROM record_view WHERE kind = %s AND parent = %s", (kind, str(parent)))
        return [key for (key,) in rows]

    async def named(self, kind: str, names: Iterable[str]) -> dict[str, RecordRow]:
        """Records of a kind by their whole, exact names; of several of one name any."""
        found = await self._by_name.many([(kind, name) for name in dict.fromkeys(names)])
        return {name: row for (_, name), row in found.items()}

    async def _named(self, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], RecordRow]:
        question = _COLUMNS + "JOIN unnest(%s::text[], %s::text[]) AS n(kind, name) USING (kind, name) WHERE NOT withdrawn"
        rows = [self._row(row) for row in await self._database.rows(question, _ends(names))]
        return {(row.kind, row.details.name): row for row in rows}

    async def those(self, kind: str, keys: Iterable[object]) -> list[RecordRow]:
        """Records of a kind by their ids, in the order of the ids; unknown ones are left out."""
        wanted = [(kind, str(key)) for key in keys]
        found = await self.linked(wanted)
        return [found[link] for link in wanted if link in found]

    async def _rows(self, question: str, *parameters: Any) -> list[RecordRow]:
        return [self._row(row) for row in await self._database.rows(question, parameters)]

    def _shown_row(self, row: Sequence[Any]) -> RecordRow:
        *known, name = row
        if known[3] is not None:
            return self._row(known)
        kind, key, version, _, created, modified = known
        return RecordRow(kind, key, version, Named(name), created, modified)

    def _row(self, row: Sequence[Any]) -> RecordRow:
        kind, key, version, document, created, modified = row
        return RecordRow(kind, key, version, self._details[kind].model_validate_json(document), created, modified)


def _ends(links: Sequence[Link]) -> tuple[list[str], list[str]]:
    return [kind for kind, _ in links], [key for _, key in links]
