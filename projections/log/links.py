"""Who points at what, as the append keeps it."""

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
    """Something that points at something else: its kind, its id and how a person knows it."""

    kind: str
    id: str
    name: str


class Links:
    """Reads the links table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def users_of(self, streams: Sequence[str], *, limit: int = 5) -> list[User]:
        """Who points at any of these, the first few. The streams themselves are not their own users."""
        rows = await self._database.rows(_USERS, {"targets": list(streams), "limit": limit})
        return [User(kind, key, name) for kind, key, name in rows]
