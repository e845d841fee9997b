"""Verification of the hash chain of the event log: was an event edited, removed, inserted or moved?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.log.hash_chain import CONTENT_SQL, FIRST_CHAIN_HASH, chain_hash

_PAGE = 10_000
_ROWS = f"""
SELECT position, {CONTENT_SQL},
    CASE WHEN isfinite(recorded_at) THEN (extract(epoch FROM recorded_at) * 1000000)::bigint ELSE -1 END, chain_hash
FROM events ORDER BY position
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. The first `checked` events are good; `reason` says what is wrong with the first bad one."""

    valid: bool
    checked: int
    first_bad_position: int | None = None
    reason: str | None = None


def verify(conninfo: str, *, progress: Callable[[int], None] | None = None) -> Verification:
    """Read the whole log, in one snapshot, and compute its chain again. Blocks: run it in a thread of its own."""
    with psycopg.connect(conninfo, application_name="medialedger verify") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        head, last = _head(connection)
        return _verified(_rows(connection), head=head, last=last, progress=progress or (lambda _: None))


def _head(connection: Connection[TupleRow]) -> tuple[int, bytes]:
    row = connection.execute("SELECT position, chain_hash FROM log_head", binary=True).fetchone()
    return (int(row[0]), bytes(row[1])) if row else (0, FIRST_CHAIN_HASH)


def _rows(connection: Connection[TupleRow]) -> Iterator[list[tuple[Any, ...]]]:
    with connection.cursor("verify", binary=True) as cursor:
        cursor.execute(_ROWS.encode())
        while rows := cursor.fetchmany(_PAGE):
            yield rows


def _verified(pages: Iterator[list[tuple[Any, ...]]], *, head: int, last: bytes, progress: Callable[[int], None]) -> Verification:
    expected, previous = 0, FIRST_CHAIN_HASH
    for rows in pages:
        for position, content, recorded_micros, stored in rows:
            expected += 1
            if position != expected:
                return Verification(False, expected - 1, expected, f"there is no event at position {expected}")
            leaf = sha256(content).digest()
            previous = chain_hash(previous, leaf=leaf, position=position, recorded_micros=recorded_micros)
            if previous != stored:
                return Verification(False, expected - 1, position, "the stored bytes do not give the stored chain hash")
        progress(expected)
    if expected < head:
        return Verification(False, expected, expected + 1, f"the log ends at {expected}, but its head is at {head}")
    if expected > head:
        return Verification(False, head, head + 1, f"the log goes on to {expected}, but its head is at {head}")
    if previous != last:
        return Verification(False, expected, expected or None, "the head's chain hash is not that of the last event")
    return Verification(True, expected)
