"""Reads the stored log in slices, for whoever computes its hashes again.

Each slice has a snapshot of its own: the log only grows, so they fit together, and one snapshot of all of it would keep VACUUM from
all tables of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, Final, LiteralString

from psycopg import Connection, Copy, sql
from psycopg.rows import TupleRow

from projections.audit.chain import Commit, Link, LogDamaged
from projections.kernel.connection import BlockingConnection, limited
from projections.kernel.page import within_bytes
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
    """The tables of the log. Blocks: for a thread of its own."""

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection

    @classmethod
    def connected(cls, conninfo: str, *, purpose: str, seconds: float | None = None) -> AbstractContextManager[StoredLog]:
        """`seconds` that a statement may take, and the caller between two of a transaction; None for maintenance."""
        return _connected(conninfo, purpose, seconds)

    def row(self, question: str, *parameters: Any) -> tuple[Any, ...] | None:
        return self._connection.execute(question.encode(), parameters, binary=True).fetchone()

    def rows(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(question.encode(), parameters, binary=True).fetchall()

    def write(self, statement: str, *parameters: Any) -> None:
        self._connection.execute(statement.encode(), parameters)

    def copied(self, query: sql.Composable) -> Iterator[bytes]:
        """The rows of a query with one column of text without control characters, a line each."""
        with self.copying(query, sql.SQL(" (FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')")) as copy:
            for data in copy:
                yield bytes(data)

    def copying(self, query: sql.Composable, options: sql.Composable | None = None) -> AbstractContextManager[Copy]:
        """The rows of a query, as PostgreSQL sends them."""
        return self._connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT{}").format(query, options or sql.SQL("")))

    def transaction(self, *, one_moment: bool = False) -> AbstractContextManager[object]:
        """`one_moment`: all that is read in it is of the same moment."""
        return _transaction(self._connection, one_moment)

    def start(self) -> Link:
        """The place before the first commit. Raises `LogDamaged` for a log without an identity."""
        found = self.row("SELECT log_id FROM log_identity")
        if found is None:
            raise LogDamaged(1, "the log has no identity")
        return Link(0, 0, genesis(found[0]))

    def commits(self, *, after: int, through: int, seen: Progress) -> Iterator[tuple[Commit, Iterator[tuple[Any, ...]]]]:
        """The commits that end after `after` and not after `through`, each with its events, to be taken before the next one. Of an
        event: position, the columns of a leaf and of its redactions, the time in microseconds, and whether `stream_versions`
        has it. `seen` is told where it is."""
        events = self._sliced(_EVENTS, after=after, through=through)
        told = after
        for row in self._sliced(_COMMITS, after=after, through=through):
            commit = Commit(*row)
            yield commit, islice(events, commit.last - commit.first + 1)
            if commit.last - told >= _PAGE or commit.last >= through:
                told = commit.last
                seen(told)

    def event(self, position: int) -> tuple[str, bytes] | None:
        """Topic and content of an event; None without one."""
        found = self.row("SELECT topic, state FROM events WHERE position = %s", position)
        return None if found is None else (found[0], found[1])

    def last_commit(self, condition: LiteralString, value: object) -> int:
        """The end of the last commit of which `condition` holds, which holds up to some commit and not after it; 0 without one."""
        question = sql.SQL("SELECT last_position, ({}) FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1")
        [(end,)] = self.rows("SELECT coalesce(max(last_position), 0) FROM commits")
        found, low = 0, 1
        while low <= end:
            middle = (low + end) // 2
            last, holds = self._connection.execute(question.format(sql.SQL(condition)), (value, middle)).fetchall()[0]
            if holds:
                found, low = last, last + 1
            else:
                end = middle - 1
        return found

    def _sliced(self, question: str, *, after: int, through: int) -> Iterator[tuple[Any, ...]]:
        """The first column of a row is its place."""
        while rows := self.rows(question, after, through):
            yield from rows
            after = rows[-1][0]


@contextmanager
def _connected(conninfo: str, purpose: str, seconds: float | None) -> Iterator[StoredLog]:
    name = f"medialedger {purpose}"
    with BlockingConnection.connect(limited(conninfo), application_name=name, autocommit=True) as connection:
        idle = () if seconds is None else (("idle_in_transaction_session_timeout", f"{int(seconds * 1000)}ms"),)
        connection.configure(seconds=seconds, settings=idle)
        yield StoredLog(connection)


@contextmanager
def _transaction(connection: Connection[TupleRow], one_moment: bool) -> Iterator[None]:
    with connection.transaction():
        if one_moment:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def whole(commit: Commit, events: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The same events. Raises `LogDamaged` if one is missing, or has another time than its commit."""
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
