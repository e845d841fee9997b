"""Reads the log in its order.

Positions are dense and follow commit order, so a reader has to remember only one position. A gap would mean damage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from domain.kernel.stream_name import StreamName
from projections.kernel.database.arrays import bigints
from projections.kernel.database.database import Database, Pool

SERVER: Final = "SELECT current_setting('server_version'), pg_database_size(current_database())"
"""A query for the version of PostgreSQL and the size of the database in bytes."""
LAST: Final = "SELECT last_position, recorded_at FROM commits ORDER BY last_position DESC LIMIT 1"
"""A query for the last position of the log and the time when it was recorded. It returns no row if the log is empty."""


_COLUMNS = """
SELECT position, originator_id, originator_version, topic, event_id, state, metadata::text, recorded_at FROM events
"""
_PAGE = _COLUMNS + "WHERE position > %s ORDER BY position LIMIT %s"
FIRST_EPOCH = 1
"""The epoch of a log that was never restored."""
_ANY_SIZE: Final = 1 << 62
HEAD = "SELECT coalesce(max(last_position), 0) FROM commits"
# The head of the partitions that this statement can see: another one may be created and filled while it begins.
_VISIBLE_HEAD: Final = "SELECT coalesce(max(position), 0) FROM events"
# The length of a state that is stored outside its row is known without reading it.
_WINDOW = f"""
WITH log AS MATERIALIZED (SELECT ({_VISIBLE_HEAD}) AS head), sized AS (
    SELECT e.position, e.originator_id, e.originator_version, e.topic, e.event_id, e.state, e.metadata, e.recorded_at,
        sum(octet_length(e.state)) OVER (ORDER BY e.position) - octet_length(e.state) AS bytes_before
    FROM events e WHERE e.position > %s AND e.position <= least(%s, (SELECT head FROM log))
        AND (%s::text[] IS NULL OR split_part(e.topic, '.', 1) = ANY(%s::text[]))
)
SELECT log.head, coalesce(e.bytes_before + octet_length(e.state) >= %s, false), e.position, e.originator_id,
    e.originator_version, e.topic, e.event_id, e.state, e.metadata::text, e.recorded_at
FROM log LEFT JOIN sized e ON e.bytes_before < %s
ORDER BY e.position
"""
_FIRST_OF: Final = """
SELECT position FROM events WHERE position <= %s AND split_part(topic, '.', 1) = ANY(%s::text[]) ORDER BY position LIMIT 1
"""
_AT = _COLUMNS + "WHERE position = ANY(%s::bigint[]) ORDER BY position"


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as the log stores it. It is decoded once, for all that read it."""

    position: int
    stream: str
    version: int
    topic: str
    event_id: UUID
    state: bytes
    metadata: str
    recorded_at: datetime
    _decoded: list[DomainEvent] = field(default_factory=list, init=False, compare=False, repr=False)

    def decoded(self, mapper: EventMapper) -> DomainEvent:
        if not self._decoded:
            self._decoded.append(mapper.read(self.topic, stream=self.stream, version=self.version, state=self.state))
        return self._decoded[0]

    @property
    def kind(self) -> str:
        return self.topic.partition(".")[0]

    @property
    def key(self) -> str:
        """The aggregate's id."""
        return StreamName.read(self.stream).key


async def read(database: Database, after: int, *, limit: int = 500) -> Sequence[LoggedEvent]:
    """Return up to `limit` events after the position `after`."""
    return [LoggedEvent(*row) for row in await database.rows(_PAGE, (after, limit))]


async def head(database: Pool) -> int:
    """Return the position of the last event; 0 for an empty log."""
    row = await database.row(HEAD)
    return int(row[0]) if row else 0


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Events of a part of the log, as of one moment.

    `through` is the position up to which there are no other events; `head` is the last position of the log.
    """

    records: Sequence[LoggedEvent]
    through: int
    head: int


async def window(
    database: Database, after: int, *, through: int, kinds: Collection[str] | None = None, most: int | None = None
) -> LogWindow:
    """Return the events after `after` up to `through`, of all aggregates or of these kinds.

    `most` limits the total bytes of their states: the event that reaches it is the last one of the window.
    """
    kind_list, size = None if kinds is None else list(kinds), _ANY_SIZE if most is None else most
    rows = await database.rows(_WINDOW, (after, through, kind_list, kind_list, size, size))
    records = [LoggedEvent(*row[2:]) for row in rows if row[2] is not None]
    head, full = int(rows[0][0]), rows[-1][1]
    return LogWindow(records, records[-1].position if full else min(through, head), head)


async def at(database: Database, positions: Sequence[int]) -> Sequence[LoggedEvent]:
    """Return the events at these positions."""
    return [LoggedEvent(*row) for row in await database.rows(_AT, (bigints(positions),))]


async def first_of(database: Database, kinds: Collection[str], *, through: int) -> int | None:
    """Return the position of the first event of aggregates of these kinds, up to `through`; None if there is none. This may read
    the whole log."""
    connection = await database.connect("first of kinds", seconds=None)
    try:
        row = await (await connection.execute(_FIRST_OF, (through, list(kinds)))).fetchone()
    finally:
        await connection.close()
    return None if row is None else int(row[0])


async def ids_at(database: Database, positions: Sequence[int]) -> dict[int, UUID]:
    """Return the ids of the events at these positions, as far as the log holds them."""
    query = "SELECT position, event_id FROM events WHERE position = ANY(%s::bigint[])"
    return dict(await database.rows(query, (bigints(positions),)))


async def log_id(database: Database) -> UUID:
    """Return the id of the log, which is created with the log and restored with it."""
    row = await database.row("SELECT log_id FROM log_identity")
    assert row is not None, "the log has an identity"
    return UUID(str(row[0]))
