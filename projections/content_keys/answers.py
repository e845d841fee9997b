"""How keys were given out, recorded behind the answers: an answer waits for nothing, and a hot key makes no event per request.

Answers are added up in memory, key by key, and once per interval each key that was given out becomes one `content_key.answered`
with a count. Whatever is still in memory is recorded at a stop. A process that is killed loses what it gave out since the last
interval began, or since the database was last there to write to: counts and times only, never a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.content_key.aggregate import Answers
from domain.content_key.commands import RecordAnswers
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, Unavailable
from projections.log.ledger import Ledger

_log = logging.getLogger(__name__)

EVERY = 5.0
MOST_KEYS = 20_000
_TOGETHER = 128


@dataclass(frozen=True, slots=True)
class Answered:
    """What is to be recorded of one key in one answer. `systems` are those it was asked for, by name."""

    key: UUID
    client: str
    systems: tuple[str, ...]
    speke_version: str
    correlation_id: str


class _Tally:
    """The answers with one key since the last record. Its event carries the first one's correlation id."""

    __slots__ = ("client", "correlation_id", "count", "first_at", "last_at", "systems", "versions")

    def __init__(self, first: Answered, at: datetime) -> None:
        self.client = first.client
        self.correlation_id = first.correlation_id
        self.first_at = self.last_at = at
        self.count = 0
        self.systems: set[str] = set()
        self.versions: set[str] = set()

    def add(self, one: Answered, at: datetime) -> None:
        self.count += 1
        self.last_at = max(self.last_at, at)
        self.systems.update(one.systems)
        self.versions.add(one.speke_version)

    def absorb(self, later: _Tally) -> None:
        self.count += later.count
        self.last_at = max(self.last_at, later.last_at)
        self.systems |= later.systems
        self.versions |= later.versions

    def total(self) -> Answers:
        return Answers(self.count, self.first_at, self.last_at, tuple(sorted(self.systems)), tuple(sorted(self.versions)))


class AnswerRecorder:
    """Holds what was answered, for at most `most` keys at a time; what comes beyond that is counted and told in the log."""

    def __init__(self, ledger: Ledger, clock: Clock, *, every: float = EVERY, most: int = MOST_KEYS) -> None:
        self._ledger = ledger
        self._clock = clock
        self._every = every
        self._most = most
        self._tallies: dict[UUID, _Tally] = {}
        self._unrecorded = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="content key answers")

    async def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self.flush()
        if self._tallies:
            _log.warning("answers with %d content keys were not recorded", len(self._tallies))

    def add(self, one: Answered) -> None:
        at = self._clock()
        tally = self._tallies.get(one.key)
        if tally is None:
            if len(self._tallies) >= self._most:
                self._unrecorded += 1
                return
            tally = self._tallies[one.key] = _Tally(one, at)
            if 2 * len(self._tallies) == self._most:
                self._wake.set()
        tally.add(one, at)

    async def flush(self) -> None:
        """Record what there is, each key by itself and many in one commit. A database that is away is not asked for the rest."""
        if self._unrecorded:
            _log.warning("%d answers with content keys were not recorded: too many keys at once", self._unrecorded)
            self._unrecorded = 0
        due, self._tallies = self._tallies, {}
        left = deque(due.items())
        while left:
            chunk = [left.popleft() for _ in range(min(_TOGETHER, len(left)))]
            faults = await asyncio.gather(*(self._record(key, tally) for key, tally in chunk))
            self._keep_lost(chunk, faults)
            if any(isinstance(fault, Unavailable) for fault in faults):
                for key, tally in left:
                    self._put_back(key, tally)
                return

    def _keep_lost(self, chunk: Sequence[tuple[UUID, _Tally]], faults: Sequence[Exception | None]) -> None:
        """What was not written for want of a database or for a lost race is tried again; what is refused never would be."""
        for (key, tally), fault in zip(chunk, faults, strict=True):
            if isinstance(fault, Unavailable | Conflict):
                self._put_back(key, tally)
            elif fault is not None:
                _log.error("answers with the content key %s were not recorded", key, exc_info=fault)

    def _put_back(self, key: UUID, tally: _Tally) -> None:
        later = self._tallies.get(key)
        if later is not None:
            tally.absorb(later)
        self._tallies[key] = tally

    async def _record(self, key: UUID, tally: _Tally) -> Exception | None:
        cause = Cause.by(tally.client, correlation_id=tally.correlation_id)
        try:
            await self._ledger.execute(RecordAnswers(key, tally.total()), cause=cause)
        except Exception as fault:
            return fault
        return None

    async def _run(self) -> None:
        while not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._wake.wait()
            self._wake.clear()
            await self.flush()
