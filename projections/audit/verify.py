"""Verification of the event log: was an event edited, removed, inserted or moved, or a commit?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.log.hash_chain import chain_hash, commit_leaf, genesis, leaf, root

_PAGE = 5_000
_MICROS = "CASE WHEN isfinite(recorded_at) THEN (extract(epoch FROM recorded_at) * 1000000)::bigint ELSE -1 END"
_ENDS = """
SELECT (SELECT log_id FROM log_identity), (SELECT coalesce(max(last_position), 0) FROM commits),
    (SELECT coalesce(max(position), 0) FROM events), (SELECT position FROM events WHERE position < 1 LIMIT 1)
"""
_COMMITS = f"""
SELECT last_position, number, first_position, {_MICROS}, root, chain_hash FROM commits
WHERE last_position > %s AND last_position <= %s ORDER BY last_position LIMIT {_PAGE}
"""
_EVENTS = f"""
SELECT e.position, e.originator_id, e.originator_version, e.topic, e.event_id, e.metadata::text, e.state, e.salt, {_MICROS},
    v.position IS NOT DISTINCT FROM e.position
FROM events e LEFT JOIN stream_versions v ON v.stream = stream_key(e.originator_id) AND v.version = e.originator_version
WHERE e.position > %s AND e.position <= %s ORDER BY e.position LIMIT {_PAGE}
"""
_LISTED = """
SELECT count(*) FROM stream_versions WHERE position <= %s OR position > (SELECT coalesce(max(last_position), 0) FROM commits)
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. The first `checked` events are good; `reason` says what is wrong with the first bad one."""

    valid: bool
    checked: int
    first_bad_position: int | None = None
    reason: str | None = None


class _Bad(Exception):
    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def verify(conninfo: str, *, progress: Callable[[int], None] | None = None) -> Verification:
    """Read the log up to its present end and compute its hashes again. Blocks: run it in a thread of its own.

    It reads in slices, each in a snapshot of its own: the log only grows, so they fit together, and a snapshot that lasted as long
    as the verification would keep VACUUM from all tables of the database."""
    with psycopg.connect(conninfo, application_name="medialedger verify", autocommit=True) as connection:
        connection.read_only = True
        return _Verifying(connection, progress or (lambda _: None)).result()


class _Verifying:
    def __init__(self, connection: Connection[TupleRow], progress: Callable[[int], None]) -> None:
        self._connection = connection
        self._progress = progress
        self._checked = 0
        self._commits = 0
        self._previous = b""

    def result(self) -> Verification:
        try:
            self._verify()
        except _Bad as bad:
            return Verification(False, self._checked, bad.position, bad.reason)
        return Verification(True, self._checked)

    def _verify(self) -> None:
        log_id, head, last, stray = self._row(_ENDS)
        if stray is not None:
            raise _Bad(1, f"there is an event at position {stray}")
        if log_id is None:
            raise _Bad(1, "the log has no identity")
        self._previous = genesis(log_id)
        events = self._rows(_EVENTS, head)
        for commit in self._rows(_COMMITS, head):
            self._check(commit, events)
        if last > head:
            raise _Bad(head + 1, f"the log goes on to {last}, but its last commit ends at {head}")
        [listed] = self._row(_LISTED, head)
        if listed != head:
            raise _Bad(head + 1, f"stream_versions has {listed} rows for {head} events")

    def _check(self, commit: TupleRow, events: Iterator[TupleRow]) -> None:
        last, number, first, recorded_micros, stored_root, stored_hash = commit
        if first != self._checked + 1:
            raise _Bad(self._checked + 1, f"there is no commit with the event at position {self._checked + 1}")
        if number != self._commits + 1:
            raise _Bad(first, f"the commit of the events {first} to {last} is not number {self._commits + 1}")
        leaves, other_times, unlisted = [], [], []
        for expected, (position, *event, micros, listed) in enumerate(islice(events, last - first + 1), first):
            if position != expected:
                raise _Bad(expected, f"there is no event at position {expected}")
            if not listed:
                unlisted.append(position)
            if micros != recorded_micros:
                other_times.append(position)
            leaves.append(_leaf(*event))
        if first + len(leaves) <= last:
            raise _Bad(first + len(leaves), f"there is no event at position {first + len(leaves)}")
        if other_times:
            raise _Bad(first, f"the recorded time of the event {other_times[0]} is not that of its commit")
        if root(leaves) != stored_root:
            raise _Bad(first, f"the stored bytes of the events {first} to {last} do not give the root of their commit")
        found = commit_leaf(first=first, count=last - first + 1, recorded_micros=recorded_micros, root=stored_root)
        if unlisted:
            raise _Bad(unlisted[0], f"the event {unlisted[0]} is not what stream_versions has for its stream and version")
        self._previous = chain_hash(self._previous, leaf=found)
        if self._previous != stored_hash:
            raise _Bad(first, f"the commit of the events {first} to {last} does not give its chain hash")
        self._checked = last
        self._commits = number

    def _rows(self, question: str, head: int) -> Iterator[TupleRow]:
        """All rows up to the head; the first column is their place."""
        after = 0
        while rows := self._connection.execute(question.encode(), (after, head), binary=True).fetchall():
            yield from rows
            after = rows[-1][0]
            self._progress(self._checked)

    def _row(self, question: str, *parameters: Any) -> tuple[Any, ...]:
        found = self._connection.execute(question.encode(), parameters, binary=True).fetchone()
        assert found is not None, "a SELECT without FROM gives one row"
        return found


def _leaf(stream: str, version: int, topic: str, event_id: UUID, metadata: str, state: bytes, salt: bytes) -> bytes:
    return leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata, state=state, salt=salt)
