"""Checks the log's hash chain from the stored bytes: that nobody edited, removed, inserted or reordered anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.log.leaf import CONTENT_SQL, FIRST_LINK, link

_PAGE = 10_000
_ROWS = f"""
SELECT position, {CONTENT_SQL},
    CASE WHEN isfinite(recorded_at) THEN (extract(epoch FROM recorded_at) * 1000000)::bigint ELSE -1 END, link
FROM events ORDER BY position
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`checked` events were found whole and in place; `reason` says what the first bad position does not fit."""

    valid: bool
    checked: int
    first_bad_position: int | None = None
    reason: str | None = None


def verify(conninfo: str, *, progress: Callable[[int], None] | None = None) -> Verdict:
    """Read the whole log, as it stood at one moment, and make its chain again. Blocks: run it in a thread of its own."""
    with psycopg.connect(conninfo, application_name="medialedger verify") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        head, last = _head(connection)
        return _verified(_rows(connection), head=head, last=last, progress=progress or (lambda _: None))


def _head(connection: Connection[TupleRow]) -> tuple[int, bytes]:
    found = connection.execute("SELECT position, link FROM log_head", binary=True).fetchone()
    return (int(found[0]), bytes(found[1])) if found else (0, FIRST_LINK)


def _rows(connection: Connection[TupleRow]) -> Iterator[list[tuple[Any, ...]]]:
    with connection.cursor("verify", binary=True) as cursor:
        cursor.execute(_ROWS.encode())
        while rows := cursor.fetchmany(_PAGE):
            yield rows


def _verified(pages: Iterator[list[tuple[Any, ...]]], *, head: int, last: bytes, progress: Callable[[int], None]) -> Verdict:
    expected, previous = 0, FIRST_LINK
    for rows in pages:
        for position, content, recorded_micros, stored in rows:
            expected += 1
            if position != expected:
                return Verdict(False, expected - 1, expected, f"there is no event at position {expected}")
            mark = sha256(content).digest()
            previous = link(previous, leaf=mark, position=position, recorded_micros=recorded_micros)
            if previous != stored:
                return Verdict(False, expected - 1, position, "the stored bytes do not give the stored link")
        progress(expected)
    if expected < head:
        return Verdict(False, expected, expected + 1, f"the log ends at {expected}, but its head is at {head}")
    if expected > head:
        return Verdict(False, head, head + 1, f"the log goes on to {expected}, but its head is at {head}")
    if previous != last:
        return Verdict(False, expected, expected or None, "the head's link is not that of the last event")
    return Verdict(True, expected)
