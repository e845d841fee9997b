"""Stored checkpoints, their anchors, and the proofs against the last checkpoint."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from projections.audit.chain import Commit, LogDamaged, leaf_of
from projections.audit.checkpoint import Checkpoint
from projections.audit.stored_log import StoredLog, check_events
from projections.audit.stream_heads import StreamHeads
from projections.audit.stream_map import sibling_hashes, stream_key
from projections.audit.tree import Node, Tile, consistency, inclusion, node_of, tiles_of, tree_root
from projections.log.hash_chain import path as path_in

T = TypeVar("T")

_LAST: Final = "SELECT number, note FROM checkpoints ORDER BY number DESC LIMIT 1"
_PAGE: Final = "SELECT number, note FROM checkpoints WHERE number < %s ORDER BY number DESC LIMIT %s"
_HANDED_OVER: Final = r"SELECT number, note FROM checkpoints WHERE note LIKE E'%%\nkey %%' ORDER BY number"
_ANCHORS: Final = "SELECT kind, place, evidence FROM checkpoint_anchors WHERE checkpoint = %s ORDER BY kind, place"
_COMMIT: Final = """
SELECT last_position, number, first_position, (extract(epoch FROM recorded_at) * 1000000)::bigint, root, chain_hash FROM commits
WHERE last_position >= %s ORDER BY last_position LIMIT 1
"""
_ENTRIES: Final = """
SELECT int8send(first_position) || int8send(last_position - first_position + 1)
    || int8send((extract(epoch FROM recorded_at) * 1000000)::bigint) || root
FROM commits WHERE last_position > %s ORDER BY last_position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class StoredAnchor:
    """A place outside the database where a checkpoint is stored. `evidence` is what that place returned."""

    kind: str
    place: str
    evidence: bytes | None

    def shown(self) -> dict[str, str]:
        evidence = {} if self.evidence is None else {"evidence": b64encode(self.evidence).decode()}
        return {"kind": self.kind, "place": self.place, **evidence}


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    number: int
    note: str

    @property
    def content(self) -> Checkpoint:
        return Checkpoint.read(self.note.rpartition("\n\n")[0] + "\n")


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """The proof that an event is in its commit, at its place in the tree over `size` commits."""

    position: int
    leaf: bytes
    commit: Commit
    path: Sequence[bytes]
    size: int
    tree: Sequence[bytes]

    def shown(self) -> dict[str, Any]:
        return {
            "commit": self.commit.number,
            "first": self.commit.first,
            "count": self.commit.last - self.commit.first + 1,
            "recorded_micros": self.commit.recorded_micros,
            "path": [hash.hex() for hash in self.path],
            "tree": [hash.hex() for hash in self.tree],
        }


class Checkpoints:
    """Reads checkpoints and proofs within the caller's transaction. Its methods block."""

    def __init__(self, stored: StoredLog) -> None:
        self._stored = stored
        self._leaves: tuple[Commit, list[bytes]] | None = None

    def last(self) -> StoredCheckpoint | None:
        row = self._stored.row(_LAST)
        return None if row is None else StoredCheckpoint(*row)

    def before(self, number: int, limit: int) -> list[StoredCheckpoint]:
        """Return checkpoints with lower numbers, the newest first."""
        return [StoredCheckpoint(*row) for row in self._stored.rows(_PAGE, number, limit)]

    def handed_over(self) -> list[StoredCheckpoint]:
        """Return the checkpoints that hand over to another key."""
        return [StoredCheckpoint(*row) for row in self._stored.rows(_HANDED_OVER)]

    def anchors(self, number: int) -> list[StoredAnchor]:
        return [StoredAnchor(*row) for row in self._stored.rows(_ANCHORS, number)]

    def included(self, position: int, size: int) -> InclusionProof:
        """Return the proof of an event in the tree over the first `size` commits.

        Raise `ValueError` if the event is not in these commits, and `LogDamaged` if the stored log does not prove it.
        """
        last = self.last()
        if last is None or position > last.content.events:
            raise ValueError(f"no checkpoint includes the event {position}")
        commit, leaves = self._commit(position)
        if commit.number > size:
            raise ValueError(f"the event {position} is not in the first {size} commits")
        index = position - commit.first
        tree = self._compute(lambda node: inclusion(commit.number - 1, size, node=node))
        return InclusionProof(position, leaves[index], commit, path_in(index, leaves), size, tree)

    def consistent(self, old: int, size: int) -> list[bytes]:
        return self._compute(lambda node: consistency(old, size, node=node))

    def stream(self, name: str) -> dict[str, Any] | None:
        """Return the stream in the map of the last checkpoint with its proof; None if the map does not have it."""
        heads, key = StreamHeads(self._stored), stream_key(name)
        head = heads.head(key)
        if head is None:
            return None
        nodes, few = heads.way(key)
        return {
            "stream": name,
            "version": head.version,
            "hash": head.hash.hex(),
            "beside": [hash.hex() for hash in sibling_hashes(key, nodes, heads=few)],
        }

    def subtrees(self, size: int) -> list[bytes]:
        """Return the roots of the complete subtrees of the tree over the first `size` commits, the largest first."""

        def roots(node: Node) -> list[bytes]:
            hashes, start = [], 0
            for level in reversed(range(size.bit_length())):
                if size >> level & 1:
                    hashes.append(node(level, start >> level))
                    start += 1 << level
            return hashes

        return self._compute(roots)

    def root(self, size: int) -> bytes:
        """Return the root of the tree over the first `size` commits, computed from the stored tiles."""
        return self._compute(lambda node: tree_root(size, node))

    def tile(self, tile: Tile) -> bytes | None:
        row = self._stored.row("SELECT hashes FROM log_tiles WHERE level = %s AND number = %s", tile.level, tile.number)
        return None if row is None else bytes(row[0])

    def entries(self, first: int, last: int) -> list[bytes]:
        """Return the entries of these commits: the content whose hash, after a 0x00, is their leaf."""
        after = self._stored.last_commit("number < %s", first)
        return [bytes(entry) for (entry,) in self._stored.rows(_ENTRIES, after, last - first + 1)]

    def _compute(self, what: Callable[[Node], T]) -> T:
        tiles = {tile: content for tile in tiles_of(what) if (content := self.tile(tile)) is not None}
        try:
            return what(node_of(tiles))
        except LookupError:
            raise LogDamaged(1, "the stored tree lacks tiles") from None

    def _commit(self, position: int) -> tuple[Commit, list[bytes]]:
        if self._leaves is not None and self._leaves[0].first <= position <= self._leaves[0].last:
            return self._leaves
        row = self._stored.row(_COMMIT, position)
        if row is None or row[2] > position:
            raise LogDamaged(position, f"there is no commit with the event at position {position}")
        commit = Commit(*row)
        leaves = [leaf_of(columns) for _, *columns, _, _ in self._events(commit)]
        self._leaves = commit, leaves
        return self._leaves

    def _events(self, commit: Commit) -> Iterator[tuple[Any, ...]]:
        for stored, events in self._stored.commits(after=commit.first - 1, through=commit.last, seen=lambda _: None):
            yield from check_events(stored, events)
