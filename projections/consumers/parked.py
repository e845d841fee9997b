"""Parked records (dead letters): events that a consumer could not process.

They stay in a table until an operator requests a replay. After a parked record all later ones
of the same aggregate are parked too, so that their order is kept. All others go on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.stream_name import StreamName
from projections.kernel.arrays import bigints, texts
from projections.kernel.database import Database
from projections.kernel.page import LARGEST
from projections.log.reader import LoggedEvent

_PARK = """
INSERT INTO parked_records (consumer, position, stream, topic, error)
SELECT %s, p.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS p (position, stream, topic, error)
ON CONFLICT (consumer, position)
DO UPDATE SET error = excluded.error, attempts = parked_records.attempts + 1, replay = false, parked_at = clock_timestamp()
"""
_COLUMNS = "SELECT consumer, position, stream, topic, error, attempts, replay, parked_at FROM parked_records "
_PAGE = _COLUMNS + "WHERE consumer = %s AND position > %s ORDER BY position LIMIT %s"
_ASK = """
UPDATE parked_records SET replay = true WHERE consumer = %(consumer)s AND (%(stream)s::text IS NULL OR stream = %(stream)s)
"""
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """An event that could not be processed. `attempts` counts the failed tries; `replay`: another one was requested."""

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
    """The parked records, for operators and for the consumer that tries them again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, consumer: str, *, after: int = 0, limit: int = LARGEST) -> Sequence[ParkedRecord]:
        """The records after a position, by position."""
        return [ParkedRecord(*row) for row in await self._database.rows(_PAGE, (consumer, after, limit))]

    async def request_replay(self, consumer: str, *, stream: str | None = None) -> int:
        """Have the parked records of a consumer, or of one aggregate, tried again. Returns their number."""
        return await self._database.execute(_ASK, {"consumer": consumer, "stream": stream})

    async def streams(self, consumer: str) -> set[str]:
        """The streams that have parked records."""
        return {
            stream
            for (stream,) in await self._database.rows(
                "SELECT DISTINCT stream FROM parked_records WHERE consumer = %s", (consumer,)
            )
        }

    async def to_replay(self, consumer: str, *, limit: int = 500) -> Sequence[tuple[int, str]]:
        """Positions and streams of the records that are to be tried again, by position."""
        query = "SELECT position, stream FROM parked_records WHERE consumer = %s AND replay ORDER BY position LIMIT %s"
        return [(position, stream) for position, stream in await self._database.rows(query, (consumer, limit))]


async def park(
    connection: AsyncConnection[TupleRow], consumer: str, *, records: Sequence[LoggedEvent], errors: Sequence[str]
) -> None:
    """Park records, in the caller's transaction. A record that is parked already gets the new error."""
    columns = (
        bigints([record.position for record in records]),
        texts([record.stream for record in records]),
        texts([record.topic for record in records]),
        texts([error[:_LONGEST] for error in errors]),
    )
    await connection.execute(_PARK, (consumer, *columns))


async def unpark(connection: AsyncConnection[TupleRow], consumer: str, *, positions: Collection[int]) -> None:
    """Remove parked records that were processed, in the caller's transaction."""
    await connection.execute(
        "DELETE FROM parked_records WHERE consumer = %s AND position = ANY(%s::bigint[])", (consumer, bigints(list(positions)))
    )
