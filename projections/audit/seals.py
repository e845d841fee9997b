"""Seals of the log's partitions: the content of a full partition, recorded after its hashes were recomputed.

A partition's commits are those that begin in it. So each commit belongs to one partition, and seals follow each other without gaps.
A seal stores the chain hash behind the last of these commits, which fixes every byte of their events, their order and their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from domain.kernel.errors import Unavailable
from projections.audit.chain import Chain, Link, LogDamaged
from projections.audit.redactions import Redactions
from projections.audit.stored_log import Progress, StoredLog, check_events

SEALS: Final = "SELECT last_position, through, last_commit, chain_hash, sealed_at FROM log_seals ORDER BY last_position"
# Reads the catalogue, because the account of the running product may not read the schema of the partitions.
_PARTITIONS: Final = """
SELECT p.first_position, p.last_position, h.head, (SELECT recorded_at FROM events WHERE position = p.first_position),
    (SELECT recorded_at FROM events WHERE position = least(p.last_position, h.head)),
    pg_table_size(t.oid), pg_indexes_size(t.oid),
    s.last_position, s.through, s.last_commit, s.chain_hash, s.sealed_at
FROM log_partitions p
JOIN pg_namespace n ON n.nspname = 'event_partitions'
JOIN pg_class t ON t.relnamespace = n.oid AND t.relname = 'events_' || p.first_position
CROSS JOIN (SELECT coalesce(max(last_position), 0) AS head FROM commits) AS h
LEFT JOIN log_seals s USING (last_position)
ORDER BY p.first_position
"""
_END: Final = "SELECT last_position FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1"
_SEAL: Final = """
INSERT INTO log_seals (last_position, through, last_commit, chain_hash) VALUES (%s, %s, %s, %s)
RETURNING last_position, through, last_commit, chain_hash, sealed_at
"""
_LOCK: Final = 0x6D6C207365616C  # "ml seal"


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of the partition that ends at `partition_end`. `end` is the place behind the last commit that begins in it."""

    partition_end: int
    end: Link
    sealed_at: datetime

    @classmethod
    def of(cls, row: Sequence[Any]) -> Seal:
        partition_end, through, last_commit, chain_hash, sealed_at = row
        return cls(partition_end, Link(through, last_commit, chain_hash), sealed_at)


@dataclass(frozen=True, slots=True)
class LogPartition:
    """A partition of the log, with the times of its first and last event, and its size in bytes."""

    first: int
    last: int
    events: int
    begins_at: datetime | None
    ends_at: datetime | None
    table_bytes: int
    index_bytes: int
    seal: Seal | None

    @property
    def full(self) -> bool:
        return self.events == self.last - self.first + 1


def partitions(stored: StoredLog) -> list[LogPartition]:
    """Return the partitions in the order of their positions."""
    return [_partition(*row) for row in stored.rows(_PARTITIONS)]


def _partition(first: int, last: int, head: int, *rest: Any) -> LogPartition:
    begins_at, ends_at, table_bytes, index_bytes, *seal = rest
    events = max(min(last, head) - first + 1, 0)
    recorded_seal = None if seal[0] is None else Seal.of(seal)
    return LogPartition(first, last, events, begins_at, ends_at, table_bytes, index_bytes, recorded_seal)


def seal_full(stored: StoredLog, *, seen: Progress) -> Iterator[LogPartition]:
    """Seal the full partitions that are not sealed, the oldest first, and yield each one.

    Raise `LogDamaged`, and `Unavailable` while another process does this.
    """
    if not stored.rows("SELECT pg_try_advisory_lock(%s)", _LOCK)[0][0]:
        raise Unavailable("another process is sealing partitions of the log")
    end = stored.start()
    for partition in partitions(stored):
        if partition.seal is None:
            if not partition.full:
                return
            end = _verify(stored, partition, after=end, seen=seen)
            seal = Seal.of(stored.rows(_SEAL, partition.last, end.position, end.number, end.chain_hash)[0])
            yield replace(partition, seal=seal)
        else:
            end = partition.seal.end


def _verify(stored: StoredLog, partition: LogPartition, *, after: Link, seen: Progress) -> Link:
    """Recompute the hashes of the partition's commits, and return their end."""
    chain, redactions = Chain(after), Redactions()
    if ends := stored.rows(_END, partition.last):
        for commit, events in stored.commits(after=after.position, through=ends[0][0], seen=seen):
            chain.expect(commit)
            chain.add(
                commit,
                [redactions.leaf(at, columns, recorded_micros=time) for at, *columns, time, _ in check_events(commit, events)],
            )
        redactions.finish(stored.event)
    if chain.end.position < partition.last:
        missing = chain.end.position + 1
        raise LogDamaged(missing, f"there is no commit with the event at position {missing}")
    return chain.end
