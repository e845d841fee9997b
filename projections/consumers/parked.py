"""Records that a consumer could not take in. They wait in the table until a person has them replayed; the rest of the log goes on.

Behind a parked record all later ones of the same aggregate are parked too, so that their order is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.arrays import bigints, texts
from projections.kernel.database import Database
from projections.kernel.page import LARGEST
from projections.log.tail import LoggedEvent

_PARK = """
INSERT INTO parked (consumer, position, stream, topic, error)
SELECT %s, p.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS p (position, stream, topic, error)
ON CONFLICT (consumer, position)
DO UPDATE SET error = excluded.error, attempts = parked.attempts + 1, replay = false, parked_at = clock_timestamp()
"""
_COLUMNS = "SELECT consumer, position, stream, topic, error, attempts, replay, parked_at FROM parked "
_PAGE = _COLUMNS + "WHERE consumer = %s AND position > %s ORDER BY position LIMIT %s"
_ASK = """
UPDATE parked SET replay = true WHERE consumer = %(consumer)s AND (%(stream)s::text IS NULL OR stream = %(stream)s)
"""
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """`attempts` counts the tries that failed; `replay`: somebody has asked for another one."""

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
        return self.stream.partition(":")[0]

    @property
    def key(self) -> str:
        """The aggregate's id."""
        return self.stream.partition(":")[2]


class Parked:
    """What is parked, for operators and for the consumer that is to try it again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, consumer: str, *, after: int = 0, limit: int = LARGEST) -> Sequence[ParkedRecord]:
        """Those behind a position, in the log's order."""
        return [ParkedRecord(*row) for row in await self._database.rows(_PAGE, (consumer, after, limit))]

    async def ask_replay(self, consumer: str, *, stream: str | None = None) -> int:
        """Have all parked records of a consumer, or of one aggregate, tried again by whoever runs it; how many."""
        return await self._database.execute(_ASK, {"consumer": consumer, "stream": stream})

    async def streams(self, consumer: str) -> set[str]:
        return {
            stream for (stream,) in await self._database.rows("SELECT DISTINCT stream FROM parked WHERE consumer = %s", (consumer,))
        }

    async def wanted(self, consumer: str, *, limit: int = 500) -> Sequence[tuple[int, str]]:
        """Positions and streams of what is to be tried again, in order."""
        question = "SELECT position, stream FROM parked WHERE consumer = %s AND replay ORDER BY position LIMIT %s"
        return [(position, stream) for position, stream in await self._database.rows(question, (consumer, limit))]


async def park(
    connection: AsyncConnection[TupleRow], consumer: str, *, records: Sequence[LoggedEvent], errors: Sequence[str]
) -> None:
    """In the caller's transaction. One that is parked already is kept with its new error."""
    columns = (
        bigints([record.position for record in records]),
        texts([record.stream for record in records]),
        texts([record.topic for record in records]),
        texts([error[:_LONGEST] for error in errors]),
    )
    await connection.execute(_PARK, (consumer, *columns))


async def unpark(connection: AsyncConnection[TupleRow], consumer: str, *, positions: Collection[int]) -> None:
    await connection.execute(
        "DELETE FROM parked WHERE consumer = %s AND position = ANY(%s::bigint[])", (consumer, bigints(list(positions)))
    )
