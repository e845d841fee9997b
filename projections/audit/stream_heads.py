"""The stored map of streams: new events change it, and proofs read it. See docs/explanation/the-log.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from projections.audit.chain import LogDamaged
from projections.audit.stored_log import StoredLog
from projections.audit.stream_map import (
    CHILDREN,
    EMPTY,
    MOST,
    MapPart,
    StreamHead,
    child_number,
    children,
    empty_head,
    encode_node,
    join_all,
    part_of,
    prefix,
    stream_key,
)

_BITS: Final = 4
_KNOWN: Final = "SELECT key, version, hash FROM stream_heads WHERE key = ANY(%b::bytea[])"
_STORE: Final = """
INSERT INTO stream_heads (key, version, hash) SELECT * FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[])
ON CONFLICT (key) DO UPDATE SET version = excluded.version, hash = excluded.hash
"""
_NODES: Final = "SELECT prefix, children FROM stream_map_nodes WHERE prefix = ANY(%b::text[])"
_STORE_NODES: Final = """
INSERT INTO stream_map_nodes (prefix, children) SELECT * FROM unnest(%b::text[], %b::bytea[])
ON CONFLICT (prefix) DO UPDATE SET children = excluded.children
"""
_RANGES: Final = """
SELECT part.number::int, h.key, h.version, h.hash
FROM unnest(%b::bytea[], %b::bytea[]) WITH ORDINALITY AS part (low, high, number)
CROSS JOIN LATERAL (SELECT * FROM stream_heads WHERE key BETWEEN part.low AND part.high) AS h
"""
_KEY_DIGITS: Final = 64


class StreamHeads:
    """The map, changed within one transaction."""

    def __init__(self, stored_log: StoredLog) -> None:
        self._stored = stored_log
        self._leaves: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self._first: dict[str, int] = {}

    def add(self, stream: str, version: int, *, leaf: bytes, position: int) -> None:
        """Add an event, in the order of the log. Raise `LogDamaged` if the versions of a stream are not consecutive."""
        leaves = self._leaves[stream]
        if leaves and leaves[-1][0] + 1 != version:
            raise LogDamaged(position, f"the event {position} is version {version} of its stream, after {leaves[-1][0]}")
        leaves.append((version, leaf))
        self._first.setdefault(stream, position)

    def root(self) -> bytes:
        """Return the root of the stored map."""
        return self._part("", self._nodes([""])).hash

    def store(self, streams: int) -> tuple[int, bytes]:
        """Store the added events. Return the number of streams, given their previous number `streams`, and the new root."""
        if not self._leaves:
            return streams, self.root()
        changed, new = self._changed()
        ordered = sorted(changed, key=lambda head: head.key)
        self._stored.write(_STORE, [h.key for h in ordered], [h.version for h in ordered], [h.hash for h in ordered])
        root = self._update([head.key for head in ordered])
        return streams + new, root.hash

    def _changed(self) -> tuple[list[StreamHead], int]:
        keys = {stream: stream_key(stream) for stream in self._leaves}
        stored_heads = {head.key: head for head in _heads(self._stored.rows(_KNOWN, list(keys.values())))}
        changed = []
        for stream, leaves in self._leaves.items():
            head = stored_heads.get(keys[stream]) or empty_head(keys[stream])
            if leaves[0][0] != head.version + 1:
                at = self._first[stream]
                raise LogDamaged(at, f"the event {at} is version {leaves[0][0]} of its stream, after {head.version}")
            for _, leaf in leaves:
                head = head.followed_by(leaf)
            changed.append(head)
        return changed, len(changed) - len(stored_heads)

    def _update(self, keys: Sequence[bytes]) -> MapPart:
        """Update the parts below these keys and then the nodes on the ways to them, upwards, and return the root."""
        levels, parts = self._ways(keys)
        made: dict[str, bytes] = {}
        news = {at: _part_of(at, heads, made) for at, heads in self._few(parts).items()}
        for length, level in reversed(list(enumerate(levels))):
            for at in [at for at in news if len(at) > length]:
                level[at[:-1]][int(at[-1], 16)] = news.pop(at)
            for at, node in level.items():
                made[at] = encode_node(node)
                news[at] = join_all(node)
        if made:
            self._stored.write(_STORE_NODES, list(made), list(made.values()))
        return news[""]

    def _ways(self, keys: Sequence[bytes]) -> tuple[list[dict[str, list[MapPart]]], list[str]]:
        """Return the nodes on the paths to the keys by level, and the parts without a node that contain the keys."""
        levels: list[dict[str, list[MapPart]]] = []
        parts: list[str] = []
        going: dict[str, list[bytes]] = {"": list(keys)}
        while going:
            nodes = self._nodes(list(going))
            if nodes:
                levels.append(nodes)
            following: dict[str, list[bytes]] = defaultdict(list)
            for at, inside in going.items():
                if at not in nodes:
                    parts.append(at)
                    continue
                for key in inside:
                    following[prefix(key, len(at) + 1)].append(key)
            going = following
        return levels, parts

    def _nodes(self, prefixes: Sequence[str]) -> dict[str, list[MapPart]]:
        return {at: children(bytes(content)) for at, content in self._stored.rows(_NODES, list(prefixes))}

    def _part(self, at: str, nodes: Mapping[str, Sequence[MapPart]]) -> MapPart:
        return join_all(nodes[at]) if at in nodes else part_of(self._few([at])[at], len(at) * _BITS)

    def _few(self, parts: Sequence[str]) -> dict[str, list[StreamHead]]:
        """Return the streams of these parts."""
        heads: dict[str, list[StreamHead]] = {at: [] for at in parts}
        low = [bytes.fromhex(at.ljust(_KEY_DIGITS, "0")) for at in parts]
        high = [bytes.fromhex(at.ljust(_KEY_DIGITS, "f")) for at in parts]
        for number, *head in self._stored.rows(_RANGES, low, high):
            heads[parts[number - 1]] += _heads([head])
        return heads

    def way(self, key: bytes) -> tuple[list[list[MapPart]], list[StreamHead]]:
        """Return the nodes on the way from the root to a key, and the streams of the part behind the last node."""
        nodes: list[list[MapPart]] = []
        while len(nodes) < _KEY_DIGITS and (level := self._nodes([prefix(key, len(nodes))])):
            nodes += level.values()
        at = prefix(key, len(nodes))
        return nodes, self._few([at])[at]

    def head(self, key: bytes) -> StreamHead | None:
        heads = _heads(self._stored.rows(_KNOWN, [key]))
        return heads[0] if heads else None


def _heads(rows: Iterable[Sequence[object]]) -> list[StreamHead]:
    return [StreamHead(bytes(key), version, bytes(hash)) for key, version, hash in rows]  # type: ignore[arg-type, call-overload]


def _part_of(at: str, heads: Sequence[StreamHead], made: dict[str, bytes]) -> MapPart:
    """Return a part. If it has more streams than a part without a node may have, its nodes are added to `made`."""
    if len(heads) <= MOST:
        return part_of(heads, len(at) * _BITS)
    inside: list[list[StreamHead]] = [[] for _ in range(CHILDREN)]
    for head in heads:
        inside[child_number(head.key, len(at))].append(head)
    node = [_part_of(f"{at}{number:x}", some, made) if some else EMPTY for number, some in enumerate(inside)]
    made[at] = encode_node(node)
    return join_all(node)
