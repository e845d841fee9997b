"""Sealing: recomputes the hashes of the log since the last checkpoint, adds them to the tree and to the map of streams, and signs
the result.

One transaction under a lock makes a checkpoint, its tiles and its part of the map, so all of them are of one moment. A result that
differs from the stored bytes is not signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Final

from projections.audit.chain import Chain, Link, LogDamaged
from projections.audit.checkpoint import Checkpoint, NoCheckpoint, origin
from projections.audit.checkpoint_keys import CheckpointKeys
from projections.audit.redactions import Redactions
from projections.audit.signed_note import NoteInvalid, sign
from projections.audit.stored_log import StoredLog, check_events
from projections.audit.stream_heads import StreamHeads
from projections.audit.tree import Edge, Tile
from projections.consumers.timeline import EPOCH
from projections.kernel.database.database import Pool
from projections.log.hash_chain import commit_leaf
from projections.vault.vault import Vault

AT_ONCE: Final = 10_000
"""The number of events after which a checkpoint is due, and the number of events per checkpoint while a long log is sealed for the
first time."""
_LOCK: Final = 0x6D6C2074726565  # "ml tree"
_LAST: Final = "SELECT number, note FROM checkpoints ORDER BY number DESC LIMIT 1"
_DUE: Final = """
SELECT h.head - coalesce(c.position, 0), c.sealed_at IS NULL OR c.sealed_at <= clock_timestamp() - make_interval(secs => %s),
    coalesce(extract(epoch FROM clock_timestamp() - w.recorded_at), 0)::float8
FROM (SELECT coalesce(max(last_position), 0) AS head FROM commits) h
LEFT JOIN (SELECT position, sealed_at FROM checkpoints ORDER BY number DESC LIMIT 1) c ON true
LEFT JOIN LATERAL (
    SELECT recorded_at FROM commits WHERE last_position > coalesce(c.position, 0) ORDER BY last_position LIMIT 1
) w ON true
"""
_THROUGH: Final = """
SELECT coalesce(max(last_position) FILTER (WHERE last_position <= a.after + a.most), min(last_position), a.after)
FROM (SELECT %s::bigint AS after, %s::bigint AS most) a
LEFT JOIN LATERAL (SELECT last_position FROM commits WHERE last_position > a.after ORDER BY last_position LIMIT a.most) c ON true
GROUP BY a.after
"""
_TILES: Final = """
SELECT t.level::int, t.number, t.hashes FROM log_tiles t
JOIN unnest(%s::int[], %s::bigint[]) AS wanted (level, number) ON t.level = wanted.level AND t.number = wanted.number
"""
_STORE_TILES: Final = """
INSERT INTO log_tiles (level, number, hashes) SELECT * FROM unnest(%s::int[], %s::bigint[], %s::bytea[])
ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes
"""
_STORE: Final = "INSERT INTO checkpoints (number, commits, position, sealed_at, note) VALUES (%s, %s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class SealingDue:
    """The events after the last checkpoint, the oldest of them `seconds` old. `rested` means that the last checkpoint is old
    enough."""

    events: int
    rested: bool
    seconds: float

    @property
    def now(self) -> bool:
        return self.events >= AT_ONCE or (self.rested and self.events > 0)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A checkpoint that was stored, with the number of `events` since the previous one."""

    number: int
    checkpoint: Checkpoint
    note: str
    events: int


async def due(pool: Pool, *, seconds: float) -> SealingDue:
    """Return how much is due, with at least `seconds` between two checkpoints."""
    [row] = await pool.rows(_DUE, (seconds,))
    return SealingDue(*row)


def seal(stored: StoredLog, vault: Vault, *, rotate: bool = False, most: int = AT_ONCE) -> Sealed | None:
    """Make the next checkpoint, of about `most` more events; return None if there is nothing new. This blocks.

    With `rotate`, hand over to a new key, even if there is nothing new. Raise `LogDamaged` if the log was changed, and store
    nothing.
    """
    with stored.transaction():
        stored.rows("SELECT pg_advisory_xact_lock(%s)::text", _LOCK)
        return _Sealing(stored, vault).next(rotate=rotate, most=most)


class _Sealing:
    def __init__(self, stored: StoredLog, vault: Vault) -> None:
        self._stored = stored
        self._start = stored.start()
        self._log_id = stored.rows("SELECT log_id FROM log_identity")[0][0]
        self._keys = CheckpointKeys(stored, vault, name=origin(self._log_id))
        self._heads = StreamHeads(stored)

    def next(self, *, rotate: bool, most: int) -> Sealed | None:
        number, before = self._before()
        start = self._start if before is None else Link(before.events, before.commits, before.chain_hash)
        [through] = self._stored.rows(_THROUGH, start.position, most)[0]
        if through == start.position and not (rotate and before is not None):
            return None
        edge = self._edge(before)
        end = self._add(start, through, edge)
        streams, streams_root = self._heads.store(0 if before is None else before.streams)
        signing = [self._keys.current(), *([self._keys.new()] if rotate else [])]
        [epoch], [now] = self._stored.rows(EPOCH)[0], self._stored.rows("SELECT clock_timestamp()")[0]
        checkpoint = Checkpoint(
            log_id=self._log_id,
            commits=end.number,
            root=edge.root(),
            events=end.position,
            epoch=epoch,
            time=now.astimezone(UTC),
            chain_hash=end.chain_hash,
            streams=streams,
            streams_root=streams_root,
            next_key=str(signing[-1].public) if rotate else None,
        )
        sealed = Sealed(number + 1, checkpoint, sign(checkpoint.text(), signing), end.position - start.position)
        self._store(sealed, edge)
        return sealed

    def _before(self) -> tuple[int, Checkpoint | None]:
        """Return the last checkpoint, which must be one of this log."""
        row = self._stored.row(_LAST)
        if row is None:
            return 0, None
        number, note = row
        try:
            return number, Checkpoint.read(self._keys.checked(note))
        except (NoteInvalid, NoCheckpoint) as fault:
            raise LogDamaged(1, f"checkpoint {number} is not one of this log: {fault}") from None

    def _edge(self, before: Checkpoint | None) -> Edge:
        """Return the right edge of the tree, which must be that of the last checkpoint."""
        size = 0 if before is None else before.commits
        places = Edge.places(size)
        tiles = {
            Tile(level, number): bytes(hashes)
            for level, number, hashes in self._stored.rows(_TILES, [t.level for t in places], [t.number for t in places])
        }
        edge = Edge(size, tiles)
        if before is not None:
            try:
                same = edge.root() == before.root and self._heads.root() == before.streams_root
            except LookupError:
                same = False
            if not same:
                raise LogDamaged(before.events, "the stored tree is not that of the last checkpoint")
        return edge

    def _add(self, start: Link, through: int, edge: Edge) -> Link:
        chain, redactions = Chain(start), Redactions()
        for commit, events in self._stored.commits(after=start.position, through=through, seen=lambda _: None):
            chain.expect(commit)
            leaves = []
            for position, *columns, time, _ in check_events(commit, events):
                stream, version, *_ = columns
                leaves.append(redactions.leaf(position, columns, recorded_micros=time))
                self._heads.add(stream, version, leaf=leaves[-1], position=position)
            chain.add(commit, leaves)
            count = commit.last - commit.first + 1
            edge.add([commit_leaf(first=commit.first, count=count, recorded_micros=commit.recorded_micros, root=commit.root)])
        redactions.finish(self._stored.event)
        return chain.end

    def _store(self, sealed: Sealed, edge: Edge) -> None:
        tiles = list(edge.changed)
        self._stored.write(_STORE_TILES, [t.level for t in tiles], [t.number for t in tiles], [edge.changed[t] for t in tiles])
        new = sealed.checkpoint
        self._stored.write(_STORE, sealed.number, new.commits, new.events, new.time, sealed.note)
