"""Questions about simple records of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from domain.records.record import Record
from projections.kernel.coalesce import Coalesced
from projections.kernel.database import Database

Link = tuple[str, str]
"""A kind and an id: what another record points at."""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as it stands: `details` is the kind's own model."""

    kind: str
    id: str
    version: int
    details: Any
    date_created: datetime
    date_modified: datetime


_SELECT = "SELECT kind, id, version, document, date_created, date_modified FROM record_view WHERE NOT withdrawn AND "


class RecordQueries:
    """All reads of the record view. Names of links asked for in the same moment share one query."""

    def __init__(self, database: Database, kinds: Iterable[type[Record]]) -> None:
        self._database = database
        self._details: Mapping[str, type[BaseModel]] = {kind.KIND: kind.DETAILS for kind in kinds}
        self._name = Coalesced[Link, str](self._names)

    async def names(self, links: Iterable[Link]) -> dict[Link, str]:
        """Display names of what is linked; one that is absent is not in the answer."""
        wanted = dict.fromkeys(links)
        return await self._name.many([link for link in wanted if link[0] in self._details]) if wanted else {}

    async def _names(self, links: Sequence[Link]) -> dict[Link, str]:
        rows = await self._database.rows(
            "SELECT kind, id, coalesce(name, '') FROM record_view JOIN unnest(%s::text[], %s::text[]) AS l(kind, id) "
            "USING (kind, id) WHERE NOT withdrawn",
            ([kind for kind, _ in links], [key for _, key in links]),
        )
        return {(kind, key): name for kind, key, name in rows}

    async def find(self, kind: str, key: object) -> RecordRow | None:
        return self._one(await self._database.rows(_SELECT + "kind = %s AND id = %s", (kind, str(key))))

    async def by_reference(self, kind: str, reference_id: str) -> RecordRow | None:
        """Reference ids are not unique: the most recently created record that has this one."""
        order = " ORDER BY date_created DESC, id DESC LIMIT 1"
        return self._one(await self._database.rows(_SELECT + "kind = %s AND reference_id = %s" + order, (kind, reference_id)))

    async def all(self, kind: str) -> list[RecordRow]:
        rows = await self._database.rows(_SELECT + "kind = %s ORDER BY name, id", (kind,))
        return [self._row(row) for row in rows]

    async def named(self, kind: str, names: Sequence[str]) -> dict[str, RecordRow]:
        """Records of a kind by their whole, exact names."""
        rows = await self._database.rows(_SELECT + "kind = %s AND name = ANY(%s)", (kind, list(names)))
        return {row.details.name: row for row in map(self._row, rows)}

    async def those(self, kind: str, keys: Sequence[object]) -> list[RecordRow]:
        """Records of a kind by their ids, in the order of the ids; unknown ones are left out."""
        wanted = [str(key) for key in keys]
        rows = await self._database.rows(_SELECT + "kind = %s AND id = ANY(%s)", (kind, wanted))
        found = {row.id: row for row in map(self._row, rows)}
        return [found[key] for key in wanted if key in found]

    def _one(self, rows: Sequence[Sequence[Any]]) -> RecordRow | None:
        return self._row(rows[0]) if rows else None

    def _row(self, row: Sequence[Any]) -> RecordRow:
        kind, key, version, document, created, modified = row
        return RecordRow(kind, key, version, self._details[kind].model_validate_json(document), created, modified)
