"""Verification of the event log: it detects events and commits that were edited, removed, inserted or moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from projections.audit.chain import Chain, Commit, Link, LogDamaged
from projections.audit.redactions import Redactions
from projections.audit.seals import SEALS, Seal
from projections.audit.stored_checkpoint import locate
from projections.audit.stored_log import StoredLog, check_events
from projections.log.reader import HEAD

# A single query uses one snapshot, since the log keeps growing.
_ENDS = f"SELECT ({HEAD}), coalesce(max(position), 0), min(position) FROM events"
_LISTED = """
SELECT count(*) FROM stream_versions WHERE position <= %s OR position > (SELECT coalesce(max(last_position), 0) FROM commits)
"""
_LINK = "SELECT last_position, number, chain_hash FROM commits WHERE last_position <= %s ORDER BY last_position DESC LIMIT 1"
_COMMIT_OF = "SELECT min(last_position) FROM commits WHERE last_position >= %s"
_PART = "SELECT last_position FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    The first `checked` events are good, those up to `since` because a seal says so; `reason` describes the first bad event.
    """

    valid: bool
    checked: int
    first_bad_position: int | None = None
    reason: str | None = None
    since: int = 0
    end: Link | None = field(default=None, compare=False)
    """The place behind the last good commit."""
    head: int = field(default=0, compare=False)
    """The end of the log when the verification began."""
    resumes: int | None = field(default=None, compare=False)
    """The end of the damaged commit, after which verification can continue. None if all is good, or nothing follows."""

    @property
    def next(self) -> int | None:
        """The position after which the rest of the log begins; None if there is none."""
        return self.checked if self.valid and self.checked < self.head else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """The part of the log to verify: all of it by default. Only then are rows of `stream_versions` without an event detected.

    `since_seal` begins after the last sealed partition; `since` after the last commit up to this position, whose stored hash is
    trusted; `checkpoint` after this signed note, which must belong to this log; `after` after this link, which was verified before.
    `most` limits the events to the commits that reach this number, at least one commit.
    """

    since_seal: bool = False
    since: int = 0
    checkpoint: str | None = None
    after: Link | None = None
    most: int | None = None

    @property
    def whole(self) -> bool:
        return not (self.since_seal or self.since or self.checkpoint or self.after or self.most)


WHOLE: Final = Extent()


def verify(conninfo: str, *, progress: Callable[[int], None] | None = None, extent: Extent = WHOLE) -> Verification:
    """Read the log up to its present end and recompute its hashes. This blocks: run it in a separate thread.

    Raise `NoCheckpoint` if it was to begin after a checkpoint that does not belong to this log.
    """
    with StoredLog.connected(conninfo, purpose="verify") as stored:
        return _Verifying(stored, progress or (lambda _: None), extent).result()


class _Verifying:
    def __init__(self, stored: StoredLog, progress: Callable[[int], None], extent: Extent) -> None:
        self._stored = stored
        self._progress = progress
        self._extent = extent
        self._since = self._checked = self._head = 0
        self._end: Link | None = None
        self._redactions = Redactions()

    def result(self) -> Verification:
        try:
            self._verify()
        except LogDamaged as damage:
            good = max(min(self._checked, damage.position - 1), self._since)
            resumes = self._resumes(damage.position)
            return Verification(False, good, damage.position, damage.reason, self._since, self._end, self._head, resumes)
        return Verification(True, self._checked, since=self._since, end=self._end, head=self._head)

    def _resumes(self, bad: int) -> int | None:
        [(end,)] = self._stored.rows(_COMMIT_OF, bad)
        return end if end is not None and end < self._head else None

    def _verify(self) -> None:
        seals = [Seal.of(row) for row in self._stored.rows(SEALS)]  # read before the head, so that they belong to commits before it
        head, last, first = self._stored.rows(_ENDS)[0]
        if first is not None and first < 1:
            raise LogDamaged(1, f"there is an event at position {first}")
        start, self._head = self._start(seals), head
        self._since = self._checked = start.position
        if head < start.position:
            raise LogDamaged(head + 1, f"the log ends at {head}, and was good up to {start.position}")
        through = self._through(start.position, head)
        part = [seal for seal in seals if seal.end.position > start.position and (through == head or seal.end.position <= through)]
        sealed = {seal.end.position: seal for seal in part}
        self._end = start
        self._follow(Chain(start), sealed, through)
        if through < head:
            return
        if last > head:
            raise LogDamaged(head + 1, f"the log continues to {last}, but its last commit ends at {head}")
        if self._extent.whole and (listed := self._stored.rows(_LISTED, head)[0][0]) != head:
            raise LogDamaged(head + 1, f"stream_versions has {listed} rows for {head} events")

    def _start(self, seals: Sequence[Seal]) -> Link:
        """Return the place after which the verification begins."""
        extent, beginning = self._extent, self._stored.start()
        if extent.since_seal and seals:
            return seals[-1].end
        if extent.checkpoint is not None:
            return locate(self._stored, extent.checkpoint)
        if extent.after is None:
            row = self._stored.row(_LINK, extent.since) if extent.since else None
            return beginning if row is None else Link(*row)
        if extent.after.position and self._stored.row(_LINK, extent.after.position) != _columns(extent.after):
            at = extent.after.position
            raise LogDamaged(at, f"the commit that ends at {at} is not the one that was verified before")
        return extent.after

    def _through(self, start: int, head: int) -> int:
        if self._extent.most is None:
            return head
        row = self._stored.row(_PART, start + self._extent.most)
        return head if row is None else min(int(row[0]), head)

    def _follow(self, chain: Chain, seals: dict[int, Seal], head: int) -> None:
        for commit, events in self._stored.commits(after=chain.end.position, through=head, seen=self._progress):
            chain.expect(commit)
            self._check(chain, commit, events)
            seal = seals.pop(commit.last, None)
            if seal is not None and seal.end != chain.end:
                raise LogDamaged(commit.first, f"the commits up to {commit.last} are not those of the seal of their partition")
            self._checked, self._end = commit.last, chain.end
        self._redactions.finish(self._stored.event)
        for sealed in seals:
            raise LogDamaged(min(sealed, head + 1), f"a partition is sealed up to {sealed}, where no commit ends")

    def _check(self, chain: Chain, commit: Commit, events: Iterable[tuple[Any, ...]]) -> None:
        leaves, unlisted = [], None
        for position, *columns, _, listed in check_events(commit, events):
            leaves.append(self._redactions.leaf(position, columns, recorded_micros=commit.recorded_micros))
            if not listed and unlisted is None:
                unlisted = position
        chain.add(commit, leaves)
        if unlisted is not None:
            raise LogDamaged(unlisted, f"the event {unlisted} is not what stream_versions has for its stream and version")


def _columns(link: Link) -> tuple[Any, ...]:
    return link.position, link.number, link.chain_hash
