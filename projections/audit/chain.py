"""The chain of commits: the hash of each commit fixes its events and its place in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from projections.log.hash_chain import chain_hash, commit_leaf, leaf, redacted_leaf, root


class LogDamaged(Exception):
    """Raised when stored data differs from what was committed. `position` is the first position that is wrong."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Commit:
    """A row of `commits`, in the order of its columns. The time is in microseconds since 1970."""

    last: int
    number: int
    first: int
    recorded_micros: int
    root: bytes
    chain_hash: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain: behind the event `position`, the last event of the commit `number`."""

    position: int
    number: int
    chain_hash: bytes


class Chain:
    """Follows the commits from a known place, and recomputes their hashes."""

    def __init__(self, start: Link) -> None:
        self.end = start

    def expect(self, commit: Commit) -> None:
        """Raise `LogDamaged` unless the commit is the next one."""
        following = self.end.position + 1
        if commit.first != following:
            raise LogDamaged(following, f"there is no commit with the event at position {following}")
        if commit.number != self.end.number + 1:
            raise LogDamaged(commit.first, f"the commit of the events {_range(commit)} is not number {self.end.number + 1}")

    def add(self, commit: Commit, leaves: Sequence[bytes]) -> None:
        """Add a commit, given the leaves of all its events. Raise `LogDamaged` if the hashes differ."""
        if root(leaves) != commit.root:
            raise LogDamaged(commit.first, f"the stored bytes of the events {_range(commit)} do not match the root of their commit")
        count = commit.last - commit.first + 1
        commit_hash = commit_leaf(first=commit.first, count=count, recorded_micros=commit.recorded_micros, root=commit.root)
        link = chain_hash(self.end.chain_hash, leaf=commit_hash)
        if link != commit.chain_hash:
            raise LogDamaged(commit.first, f"the commit of the events {_range(commit)} does not match its chain hash")
        self.end = Link(commit.last, commit.number, link)


def leaf_of(columns: Sequence[Any]) -> bytes:
    """Return the leaf of an event from its columns, from the stream to the hashes of its erased parts."""
    stream, version, topic, event_id, metadata, state, stored_salt, metadata_hash, state_hash, *_ = columns
    salt = stored_salt or b""  # it may be missing in an edited row
    if metadata_hash is None and state_hash is None:
        return leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata, state=state, salt=salt)
    return redacted_leaf(
        stream=stream,
        version=version,
        topic=topic,
        event_id=event_id,
        hidden_metadata=metadata_hash or sha256(salt + metadata.encode()).digest(),
        hidden_state=state_hash or sha256(salt + state).digest(),
    )


def _range(commit: Commit) -> str:
    return f"{commit.first} to {commit.last}"
