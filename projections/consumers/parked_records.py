"""Parked records (dead letters): events that a consumer could not process.

They stay in a table until an operator requests a replay. After a parked record all later records of the same aggregate are parked
too, so that their order is kept. Records of other aggregates are processed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.stream_name import StreamName
from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database
from projections.kernel.database.page import LARGEST
from projections.log.reader import LoggedEvent
from projections.log.transactions import command_id

_PARK = """
INSERT INTO parked_records (consumer, position, stream, topic, error, write_id, replay, requested_at)
SELECT %(consumer)s, p.*, coalesce(q.replay, false), q.requested_at
FROM unnest(%(positions)s::bigint[], %(streams)s::text[], %(topics)s::text[], %(errors)s::text[], %(writes)s::text[])
     AS p (position, stream, topic, error, write_id)
CROSS JOIN LATERAL (
    SELECT bool_or(replay) AS replay, max(requested_at) AS requested_at FROM parked_records q
    WHERE q.consumer = %(consumer)s AND q.stream = p.stream AND q.replay
) AS q
ON CONFLICT (consumer, position)
DO UPDATE SET error = excluded.error, attempts = parked_records.attempts + 1, parked_at = clock_timestamp(),
    replay = coalesce(parked_records.replay AND parked_records.requested_at > %(requested)s, false)
"""
_COLUMNS = "SELECT consumer, position, stream, topic, error, attempts, replay, parked_at FROM parked_records "
_PAGE = _COLUMNS + "WHERE consumer = %s AND position > %s ORDER BY position LIMIT %s"
_ASK_FOR_ALL = "UPDATE parked_records SET replay = true, requested_at = statement_timestamp() WHERE consumer = %s"
_ASK = """
WITH RECURSIVE together (stream) AS (
    SELECT %(stream)s::text COLLATE "C"
    UNION
    SELECT other.stream
    FROM together JOIN parked_records own ON own.consumer = %(consumer)s AND own.stream = together.stream
    JOIN parked_records other ON other.consumer = own.consumer AND other.write_id = own.write_id
)
UPDATE parked_records SET replay = true, requested_at = statement_timestamp()
WHERE consumer = %(consumer)s AND stream IN (SELECT stream FROM together)
"""
"""A statement that requests the records of an aggregate together with those of other aggregates that share a write with it, because
a write is retried as a whole."""
# The length of a state that is stored outside its row is known without reading it.
_WANTED = """
SELECT position, stream, requested_at, is_last FROM (
    SELECT position, p.stream, p.requested_at, lead(position) OVER later IS NULL AS is_last,
        coalesce(sum(octet_length(e.state)) OVER (later ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT position, stream, requested_at FROM parked_records
        WHERE consumer = %(consumer)s AND replay AND position > %(after)s ORDER BY position LIMIT %(limit)s + 1
    ) AS p LEFT JOIN events e USING (position) WINDOW later AS (ORDER BY position)
) AS sized WHERE bytes_before < %(most)s ORDER BY position LIMIT %(limit)s
"""
_STOP = """
UPDATE parked_records SET replay = false
WHERE consumer = %s AND replay AND stream = ANY(%s::text[]) AND coalesce(requested_at <= %s, true)
"""
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """An event that could not be processed. `attempts` counts the failed attempts; `replay` means that another one was
    requested."""

    consumer: str
    position: int
    stream: str
    topic: str
    error: str
    attempts: int
    replay: bool
    parked_at: datetime

    @property
    def kind(self) -> str:
        return StreamName.read(self.stream).kind

    @property
    def key(self) -> str:
        """The aggregate's id."""
        return StreamName.read(self.stream).key


class ParkedRecords:
    """The parked records, for operators and for the consumer that retries them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, consumer: str, *, after: int = 0, limit: int = LARGEST) -> Sequence[ParkedRecord]:
        """Return the records after a position, by position."""
        return [ParkedRecord(*row) for row in await self._database.rows(_PAGE, (consumer, after, limit))]

    async def request_replay(self, consumer: str, *, stream: str | None = None) -> int:
        """Request that the parked records of a consumer, or of one aggregate, are retried. Return their number."""
        if stream is None:
            return await self._database.execute(_ASK_FOR_ALL, (consumer,))
        return await self._database.execute(_ASK, {"consumer": consumer, "stream": stream})

    async def streams(self, consumer: str) -> set[str]:
        """Return the streams that have parked records."""
        return {
            stream
            for (stream,) in await self._database.rows(
                "SELECT DISTINCT stream FROM parked_records WHERE consumer = %s", (consumer,)
            )
        }

    async def to_replay(
        self, consumer: str, *, after: int = 0, limit: int, most: int
    ) -> tuple[Sequence[tuple[int, str, datetime | None]], bool]:
        """Return position, stream and time of the request of the records after a position that are to be retried, and True if there
        are no more.

        The records are ordered by position: up to `limit`, or as many as hold `most` bytes.
        """
        parameters = {"consumer": consumer, "after": after, "limit": limit, "most": most}
        rows = await self._database.rows(_WANTED, parameters)
        return [(position, stream, requested) for position, stream, requested, _ in rows], not rows or bool(rows[-1][3])


async def park(
    connection: AsyncConnection[TupleRow],
    consumer: str,
    *,
    records: Sequence[LoggedEvent],
    errors: Sequence[str],
    requested: datetime | None = None,
) -> None:
    """Park records, in the caller's transaction.

    A record that is parked already gets the new error, and is not retried, unless a retry was requested after `requested`, the
    request that led to this attempt. A record behind others that are to be retried is retried with them.
    """
    columns = {
        "consumer": consumer,
        "positions": bigints([record.position for record in records]),
        "streams": texts([record.stream for record in records]),
        "topics": texts([record.topic for record in records]),
        "errors": texts([error[:_LONGEST] for error in errors]),
        "writes": texts([command_id(record) for record in records]),
        "requested": requested,
    }
    await connection.execute(_PARK, columns)


async def unpark(connection: AsyncConnection[TupleRow], consumer: str, *, positions: Collection[int]) -> None:
    """Remove parked records that were processed, in the caller's transaction."""
    await connection.execute(
        "DELETE FROM parked_records WHERE consumer = %s AND position = ANY(%s::bigint[])", (consumer, bigints(list(positions)))
    )


async def stop_replay(
    connection: AsyncConnection[TupleRow], consumer: str, *, streams: Collection[str], requested: datetime | None
) -> None:
    """Stop retrying records of these streams, in the caller's transaction, because an earlier one has failed again. Requests after
    `requested` stay."""
    await connection.execute(_STOP, (consumer, texts(list(streams)), requested))
