"""Search index: finds the rows of a view whose text contains a substring, without reading every row.

The index is a separate table with the hashed 3-grams of each text, filled by a consumer of the log. It only narrows down the rows:
a query tests the text of each candidate, and of everything that the consumer has not reached yet. So the result equals that of a
scan, and a client finds what it has just written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.arrays import PACKERS, PackedArray
from projections.kernel.database.database import Database, Pool

CONSUMER: Final = "search"
SHORTEST: Final = 3
"""The number of characters of the shortest term that the index can find."""

_LONGEST: Final = 10_000
"""The most 3-grams of one text. A longer text is a candidate for every term."""
_PIECE: Final = 4096
"""The number of characters of a text that are read before its 3-grams are counted."""
_TERM: Final = 64
_BEHIND: Final = 10_000
"""The most positions of the log by which the consumer may be behind. Beyond this the view is scanned."""


def grams(text: str) -> set[int]:
    """Return the hashes of all sequences of three characters, as PostgreSQL's `integer`. The set is incomplete if there are too
    many for the index."""
    sequences, end = set[str](), len(text) - SHORTEST + 1
    for begin in range(0, end, _PIECE):
        sequences.update(text[at : at + SHORTEST] for at in range(begin, min(begin + _PIECE, end)))
        if len(sequences) > _LONGEST:
            break
    hashes = {crc32(sequence.encode()) for sequence in sequences}
    return {number - 0x1_0000_0000 if number & 0x8000_0000 else number for number in hashes}


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """The index `table` of the texts in the column `search_text` of a view, in lower case.

    `kind` is the kind of the aggregates, `key` the type of their ids in the view. If `fixed`, the text of an aggregate never
    changes after its first event.
    """

    table: str
    view: str
    kind: str
    key: str
    fixed: bool = False

    async def texts(self, database: Database, keys: Sequence[str]) -> list[tuple[Any, str]]:
        """Return the ids and texts that the view has now."""
        question = f"SELECT id, coalesce(search_text, '') FROM {self.view} WHERE id = ANY(%s::text[]::{self.key}[])"
        return [(key, text) for key, text in await database.rows(question, (list(keys),))]

    async def write(self, connection: AsyncConnection[TupleRow], texts: Mapping[Any, set[int]]) -> None:
        statement = (
            f"INSERT INTO {self.table} (id, grams) SELECT id::{self.key}, grams::integer[] "
            "FROM unnest(%s::text[], %s::text[]) AS v(id, grams) "
            f"ON CONFLICT (id) DO UPDATE SET grams = excluded.grams WHERE {self.table}.grams IS DISTINCT FROM excluded.grams"
        )
        pack = PACKERS["text"]
        stored = [f"{{{','.join(map(str, sorted(hashes)))}}}" if len(hashes) <= _LONGEST else None for hashes in texts.values()]
        await connection.execute(statement, (pack([str(key) for key in texts]), pack(stored)), binary=True)

    async def candidates(self, pool: Pool, term: str, *, most: int) -> PackedArray | None:
        """Return the ids of all rows whose text may contain the term. Return None if the view has to be scanned, because there are
        more than `most` or the index cannot tell."""
        if len(term) < SHORTEST:
            return None
        question = f"""
SELECT ARRAY(SELECT id FROM ({self._candidate_query}) AS found LIMIT %(most)s + 1)
WHERE (SELECT coalesce(max(last_position), 0) FROM commits) - ({_CHECKPOINT}) <= {_BEHIND}
"""
        row = await pool.row(question, {"grams": sorted(grams(term))[:_TERM], "most": most})
        return None if row is None or len(row[0]) > most else PACKERS[self.key](row[0])

    @property
    def _candidate_query(self) -> str:
        begin = len(self.kind) + 2
        first = " AND originator_version = 1" if self.fixed else ""
        return f"""
SELECT id FROM {self.table} WHERE grams @> %(grams)s::integer[]
UNION SELECT id FROM {self.table} WHERE grams IS NULL
UNION SELECT substr(originator_id, {begin})::{self.key} FROM events
    WHERE position > ({_CHECKPOINT}) AND starts_with(originator_id, '{self.kind}:'){first}
UNION SELECT substr(stream, {begin})::{self.key} FROM parked_records
    WHERE consumer = '{CONSUMER}' AND starts_with(stream, '{self.kind}:')
"""


_CHECKPOINT: Final = f"SELECT coalesce((SELECT position FROM consumer_shards WHERE consumer = '{CONSUMER}' AND shard = 0), 0)"
