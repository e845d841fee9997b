"""Reads the table of links: the aggregates that refer to others, with their names from the views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from projections.kernel.database import Database

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


class Links:
    """Finds the users of aggregates."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def users_of(self, streams: Sequence[str], *, limit: int = 5) -> list[User]:
        """Return the first few aggregates that refer to any of these streams. A stream is not its own user."""
        rows = await self._database.rows(_USERS, {"targets": list(streams), "limit": limit})
        return [User(kind, key, name) for kind, key, name in rows]
