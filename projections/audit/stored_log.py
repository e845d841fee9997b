"""Reads the stored log in slices, for recomputing its hashes.

Each slice has its own snapshot. The log only grows, so the slices fit together, while a single snapshot would keep VACUUM from all
tables of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, Final, LiteralString

from psycopg import Connection, Copy, sql
from psycopg.rows import TupleRow

from projections.audit.chain import Commit, Link, LogDamaged
from projections.kernel.database.connection import BlockingConnection, with_limits
from projections.kernel.database.page import within_bytes
from projections.log.hash_chain import genesis

Progress = Callable[[int], None]

_PAGE: Final = 5_000
_MICROS: Final = "CASE WHEN isfinite(recorded_at) THEN (extract(epoch FROM recorded_at) * 1000000)::bigint ELSE -1 END"
_COMMITS: Final = f"""
SELECT last_position, number, first_position, {_MICROS}, root, chain_hash FROM commits
WHERE last_position > %s AND last_position <= %s ORDER BY last_position LIMIT {_PAGE}
"""
_SLICE: Final = within_bytes(
    f"SELECT * FROM events WHERE position > %s AND position <= %s ORDER BY position LIMIT {_PAGE}", order="position"
)
_EVENTS: Final = f"""
SELECT e.position, e.originator_id, e.originator_version, e.topic, e.event_id, e.metadata::text, e.state, e.salt,
    e.metadata_hash, e.state_hash, e.metadata_redaction, e.state_redaction, {_MICROS}, v.position IS NOT DISTINCT FROM e.position
FROM ({_SLICE}) AS e
LEFT JOIN stream_versions v ON v.stream = stream_key(e.originator_id) AND v.version = e.originator_version
ORDER BY e.position
"""


class StoredLog:
    """The tables of the log. Its methods block, so use it in a separate thread."""

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection

    @classmethod
    def connected(cls, conninfo: str, *, purpose: str, seconds: float | None = None) -> AbstractContextManager[StoredLog]:
        """Connect to the log. `seconds` limits a statement, and the caller's pause between two statements of a transaction; None
        for maintenance."""
        return _connect(conninfo, purpose, seconds)

    def row(self, question: str, *parameters: Any) -> tuple[Any, ...] | None:
        return self._connection.execute(question.encode(), parameters, binary=True).fetchone()

    def rows(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(question.encode(), parameters, binary=True).fetchall()

    def write(self, statement: str, *parameters: Any) -> None:
        self._connection.execute(statement.encode(), parameters)

    def copied(self, query: sql.Composable) -> Iterator[bytes]:
        """Yield the rows of a query as lines. The query has one column of text without control characters."""
        with self.copying(query, sql.SQL(" (FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')")) as copy:
            for data in copy:
                yield bytes(data)

    def copying(self, query: sql.Composable, options: sql.Composable | None = None) -> AbstractContextManager[Copy]:
        """Return the rows of a query in the form in which PostgreSQL sends them."""
        return self._connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT{}").format(query, options or sql.SQL("")))

    def transaction(self, *, one_moment: bool = False) -> AbstractContextManager[object]:
        """Begin a transaction. With `one_moment`, all that is read in it is of the same moment."""
        return _transaction(self._connection, one_moment)

    def start(self) -> Link:
        """Return the place before the first commit. Raise `LogDamaged` if the log has no identity."""
        row = self.row("SELECT log_id FROM log_identity")
        if row is None:
            raise LogDamaged(1, "the log has no identity")
        return Link(0, 0, genesis(row[0]))

    def commits(self, *, after: int, through: int, seen: Progress) -> Iterator[tuple[Commit, Iterator[tuple[Any, ...]]]]:
        """Yield the commits that end after `after` and not after `through`, each with its events, which must be consumed before the
        next commit.

        An event is a row of its position, the columns of a leaf and of its redactions, the time in microseconds, and True if
        `stream_versions` has it. `seen` is called with the position that was reached.
        """
        events = self._slices(_EVENTS, after=after, through=through)
        reported = after
        for row in self._slices(_COMMITS, after=after, through=through):
            commit = Commit(*row)
            yield commit, islice(events, commit.last - commit.first + 1)
            if commit.last - reported >= _PAGE or commit.last >= through:
                reported = commit.last
                seen(reported)

    def event(self, position: int) -> tuple[str, bytes] | None:
        """Return the topic and content of an event; None if there is none."""
        row = self.row("SELECT topic, state FROM events WHERE position = %s", position)
        return None if row is None else (row[0], row[1])

    def last_commit(self, condition: LiteralString, value: object) -> int:
        """Return the end of the last commit for which `condition` holds; 0 if there is none. The condition must hold up to some
        commit and not after it."""
        question = sql.SQL("SELECT last_position, ({}) FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1")
        [(end,)] = self.rows("SELECT coalesce(max(last_position), 0) FROM commits")
        last_end, low = 0, 1
        while low <= end:
            middle = (low + end) // 2
            last, holds = self._connection.execute(question.format(sql.SQL(condition)), (value, middle)).fetchall()[0]
            if holds:
                last_end, low = last, last + 1
            else:
                end = middle - 1
        return last_end

    def _slices(self, question: str, *, after: int, through: int) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query in slices. The first column of a row is its position."""
        while rows := self.rows(question, after, through):
            yield from rows
            after = rows[-1][0]


@contextmanager
def _connect(conninfo: str, purpose: str, seconds: float | None) -> Iterator[StoredLog]:
    name = f"medialedger {purpose}"
    with BlockingConnection.connect(with_limits(conninfo), application_name=name, autocommit=True) as connection:
        idle = () if seconds is None else (("idle_in_transaction_session_timeout", f"{int(seconds * 1000)}ms"),)
        connection.configure(seconds=seconds, settings=idle)
        yield StoredLog(connection)


@contextmanager
def _transaction(connection: Connection[TupleRow], one_moment: bool) -> Iterator[None]:
    with connection.transaction():
        if one_moment:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def check_events(commit: Commit, events: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the events unchanged. Raise `LogDamaged` if an event is missing, or has another time than its commit."""
    expected, other_times = commit.first, []
    for row in events:
        if row[0] != expected:
            break
        if row[-2] != commit.recorded_micros:
            other_times.append(expected)
        yield row
        expected += 1
    if expected <= commit.last:
        raise LogDamaged(expected, f"there is no event at position {expected}")
    if other_times:
        raise LogDamaged(commit.first, f"the recorded time of the event {other_times[0]} is not that of its commit")
