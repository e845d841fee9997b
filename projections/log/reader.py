"""Reading the log in its order.

Positions are dense and their order is commit order, so a reader has to remember one position only. A gap would be damage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.kernel.stream_name import StreamName
from projections.kernel.arrays import bigints
from projections.kernel.database import Database, Pool

_COLUMNS = """
SELECT position, originator_id, originator_version, topic, event_id, state, metadata::text, recorded_at FROM events
"""
_PAGE = _COLUMNS + "WHERE position > %s ORDER BY position LIMIT %s"
FIRST_EPOCH = 1
"""The epoch of a log that was never restored."""
_ANY_SIZE: Final = 1 << 62
HEAD = "SELECT coalesce(max(last_position), 0) FROM commits"
# The end of the log is that of the partitions that this statement knows: one may be made and filled while it begins.
_KNOWN_HEAD: Final = "SELECT coalesce(max(position), 0) FROM events"
# The length of a state is known without reading it where it is stored apart from its row.
_WINDOW = f"""
WITH log AS MATERIALIZED (SELECT ({_KNOWN_HEAD}) AS head), sized AS (
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
_CHANGES = f"""
SELECT count(e.position), array_agg(DISTINCT e.originator_id) FILTER (WHERE e.topic = ANY(%s::text[])), log.through
FROM (SELECT least(({_KNOWN_HEAD}), %s) AS through) AS log
LEFT JOIN events e ON e.position > %s AND e.position <= log.through AND split_part(e.topic, '.', 1) = ANY(%s::text[])
GROUP BY log.through
"""
_AT = _COLUMNS + "WHERE position = ANY(%s::bigint[]) ORDER BY position"


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as the log holds it, still encoded."""

    position: int
    stream: str
    version: int
    topic: str
    event_id: UUID
    state: bytes
    metadata: str
    recorded_at: datetime

    @property
    def kind(self) -> str:
        return self.topic.partition(".")[0]

    @property
    def key(self) -> str:
        """The aggregate's id."""
        return StreamName.read(self.stream).key


async def read(database: Database, after: int, *, limit: int = 500) -> Sequence[LoggedEvent]:
    """Up to `limit` events after position `after`."""
    return [LoggedEvent(*row) for row in await database.rows(_PAGE, (after, limit))]


async def head(database: Pool) -> int:
    """The position of the last event; 0 for an empty log."""
    found = await database.row(HEAD)
    return int(found[0]) if found else 0


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Events, `through`, the position up to which there are no others, and `head`, the last position of all, as of one moment."""

    records: Sequence[LoggedEvent]
    through: int
    head: int


async def window(
    database: Database, after: int, *, through: int, kinds: Collection[str] | None = None, most: int | None = None
) -> LogWindow:
    """The events after `after` up to `through`, of all aggregates or of these kinds. `most`: so many bytes of their states; the
    event with which they are reached is the last one."""
    wanted, size = None if kinds is None else list(kinds), _ANY_SIZE if most is None else most
    rows = await database.rows(_WINDOW, (after, through, wanted, wanted, size, size))
    records = [LoggedEvent(*row[2:]) for row in rows if row[2] is not None]
    head, full = int(rows[0][0]), rows[-1][1]
    return LogWindow(records, records[-1].position if full else min(through, head), head)


@dataclass(frozen=True, slots=True)
class Changes:
    """`count` events up to the position `through`, and the streams of some of them, each once."""

    count: int
    streams: Sequence[str]
    through: int


async def changes(database: Database, after: int, *, kinds: Collection[str], topics: Collection[str], most: int) -> Changes:
    """What happened to aggregates of these kinds in the `most` positions after `after`. Streams with events of these topics are
    named."""
    found = await database.row(_CHANGES, (list(topics), after + most, after, list(kinds)))
    assert found is not None, "an aggregate has a row"
    count, streams, through = found
    return Changes(count, streams or (), through)


async def at(database: Database, positions: Sequence[int]) -> Sequence[LoggedEvent]:
    """The events at these positions."""
    return [LoggedEvent(*row) for row in await database.rows(_AT, (bigints(positions),))]


async def first_of(database: Database, kinds: Collection[str], *, through: int) -> int | None:
    """The position of the first event of aggregates of these kinds, up to `through`. May read the whole log."""
    connection = await database.connect("first of kinds", seconds=None)
    try:
        row = await (await connection.execute(_FIRST_OF, (through, list(kinds)))).fetchone()
    finally:
        await connection.close()
    return None if row is None else int(row[0])


async def ids_at(database: Database, positions: Sequence[int]) -> dict[int, UUID]:
    """The ids of the events at these positions, as far as the log holds them."""
    query = "SELECT position, event_id FROM events WHERE position = ANY(%s::bigint[])"
    return dict(await database.rows(query, (bigints(positions),)))


async def log_id(database: Database) -> UUID:
    """The id of the log. It is made with the log, and restored with it."""
    found = await database.row("SELECT log_id FROM log_identity")
    assert found is not None, "the log has an identity"
    return UUID(str(found[0]))
