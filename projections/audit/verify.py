"""Verification of the event log: was an event edited, removed, inserted or moved, or a commit?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from projections.audit.chain import Chain, Commit, LogDamaged
from projections.audit.redactions import Redactions
from projections.audit.seals import SEALS, Seal
from projections.audit.stored_log import StoredLog, whole
from projections.log.reader import HEAD

# In one snapshot: the log goes on meanwhile.
_ENDS = f"SELECT ({HEAD}), coalesce(max(position), 0), min(position) FROM events"
_LISTED = """
SELECT count(*) FROM stream_versions WHERE position <= %s OR position > (SELECT coalesce(max(last_position), 0) FROM commits)
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. The first `checked` events are good, those up to `since` because a seal says so; `reason` says
    what is wrong with the first bad one."""

    valid: bool
    checked: int
    first_bad_position: int | None = None
    reason: str | None = None
    since: int = 0


def verify(conninfo: str, *, progress: Callable[[int], None] | None = None, since_seal: bool = False) -> Verification:
    """Read the log up to its present end and compute its hashes again. Blocks: run it in a thread of its own.

    `since_seal`: only what comes after the last sealed partition, and without looking for rows of `stream_versions` that no event
    has."""
    with StoredLog.connected(conninfo, purpose="verify") as stored:
        return _Verifying(stored, progress or (lambda _: None), since_seal=since_seal).result()


class _Verifying:
    def __init__(self, stored: StoredLog, progress: Callable[[int], None], *, since_seal: bool) -> None:
        self._stored = stored
        self._progress = progress
        self._since_seal = since_seal
        self._since = self._checked = 0
        self._redactions = Redactions()

    def result(self) -> Verification:
        try:
            self._verify()
        except LogDamaged as damage:
            good = max(min(self._checked, damage.position - 1), self._since)
            return Verification(False, good, damage.position, damage.reason, self._since)
        return Verification(True, self._checked, since=self._since)

    def _verify(self) -> None:
        seals = [Seal.of(row) for row in self._stored.rows(SEALS)]  # before the head: they are of commits before it
        head, last, first = self._stored.rows(_ENDS)[0]
        if first is not None and first < 1:
            raise LogDamaged(1, f"there is an event at position {first}")
        start = self._stored.start()
        if self._since_seal and seals:
            start = seals[-1].end
        self._since = self._checked = start.position
        self._follow(Chain(start), {seal.end.position: seal for seal in seals if seal.end.position > start.position}, head)
        if last > head:
            raise LogDamaged(head + 1, f"the log goes on to {last}, but its last commit ends at {head}")
        listed = head if self._since_seal else self._stored.rows(_LISTED, head)[0][0]
        if listed != head:
            raise LogDamaged(head + 1, f"stream_versions has {listed} rows for {head} events")

    def _follow(self, chain: Chain, seals: dict[int, Seal], head: int) -> None:
        for commit, events in self._stored.commits(after=chain.end.position, through=head, seen=self._progress):
            chain.expect(commit)
            self._check(chain, commit, events)
            seal = seals.pop(commit.last, None)
            if seal is not None and seal.end != chain.end:
                raise LogDamaged(commit.first, f"the commits up to {commit.last} are not those of the seal of their partition")
            self._checked = commit.last
        self._redactions.finish(self._stored.event)
        for sealed in seals:
            raise LogDamaged(min(sealed, head + 1), f"a partition is sealed up to {sealed}, where no commit ends")

    def _check(self, chain: Chain, commit: Commit, events: Iterable[tuple[Any, ...]]) -> None:
        leaves, unlisted = [], None
        for position, *columns, _, listed in whole(commit, events):
            leaves.append(self._redactions.leaf(position, columns, recorded_micros=commit.recorded_micros))
            if not listed and unlisted is None:
                unlisted = position
        chain.add(commit, leaves)
        if unlisted is not None:
            raise LogDamaged(unlisted, f"the event {unlisted} is not what stream_versions has for its stream and version")
