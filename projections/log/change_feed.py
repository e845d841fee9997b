"""The growth of the log for those who follow it live: one reader in a process, whatever the number of followers.

What is kept is what every follower may know: which aggregate changed, how and where. The content of an event is not read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from domain.kernel.errors import Unavailable
from domain.kernel.stream_name import StreamName
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database, Pool
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head

PAGE: Final = 1000
KEPT: Final = 10_000
"""Changes that are kept for followers; who is further behind reads the log again."""

_PAUSE: Final = 0.2
"""Seconds between two looks at a log that grows: followers get what has come since in one piece."""
_AT_THAT_PACE: Final = 80
"""Followers. For more the pause grows with them: what a piece costs the process is its sending to each of them."""
_PAGE: Final = """
SELECT position, originator_id, originator_version, topic, recorded_at FROM events WHERE position > %s ORDER BY position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Change:
    """An event of the log without its content."""

    position: int
    aggregate: str
    id: str
    version: int
    type: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes a follower gets: any of each list, all where a list is empty. `hidden` are kinds that it may not see."""

    aggregates: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    def wants(self, change: Change) -> bool:
        return (
            change.aggregate not in self.hidden
            and (not self.aggregates or change.aggregate in self.aggregates)
            and (not self.ids or change.id in self.ids)
            and (not self.types or change.type in self.types)
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes from `first` to `last` without a gap. What is sent of them is made once for all followers with the same filter."""

    changes: Sequence[Change]
    _encoded: dict[ChangeFilter, bytes] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.changes[0].position

    @property
    def last(self) -> int:
        return self.changes[-1].position

    def encoded(self, wanted: ChangeFilter, encode: Callable[[Change], bytes]) -> bytes:
        found = self._encoded.get(wanted)
        if found is None:
            found = b"".join(encode(change) for change in self.changes if wanted.wants(change))
            self._encoded[wanted] = found
        return found


async def read_batch(database: Pool, after: int) -> Batch | None:
    """The next changes after a position; None at the log's end."""
    rows = await database.rows(_PAGE, (after, PAGE))
    if not rows:
        return None
    changes = []
    for position, stream, version, topic, recorded_at in rows:
        name = StreamName.read(stream)
        changes.append(Change(position, name.kind, name.key, version, topic, recorded_at))
    return Batch(changes)


class ChangeFeed(BackgroundTask):
    """Reads the log while it is followed. `position` is the last one that was read."""

    WHAT: ClassVar[str] = "feed of changes"

    def __init__(self, database: Database, watcher: LogWatcher, *, kept: int = KEPT, pause: float = _PAUSE) -> None:
        self.lists = database.lists
        """For followers that read what is not kept, in turns with other readers."""
        self._database = database
        self._watcher = watcher
        self._kept = kept
        self._pause = pause
        self._batches: deque[Batch] = deque()
        self._grown = asyncio.Event()
        self._lock = asyncio.Lock()
        self._followers = 0
        self.position = 0
        self.away = False

    @property
    def is_followed(self) -> bool:
        return self._followers > 0

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """The first follower starts the reader at the log's head, the last one stops it. Raises `Unavailable`."""
        async with self._lock:
            if not self._followers:
                self.position, self.away = await head(self._database), False
                self._batches.clear()
                await self.start()
            self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                await asyncio.shield(self._stop_unfollowed())

    def after(self, position: int) -> Batch | None:
        """The kept batch with the change after this position; None at the end. Raises `LookupError` where it is not kept."""
        if position >= self.position:
            return None
        for batch in self._batches:
            if batch.last > position:
                if batch.first > position + 1:
                    break
                return batch if batch.first == position + 1 else Batch(batch.changes[position + 1 - batch.first :])
        raise LookupError(position)

    async def grown(self, position: int, *, seconds: float) -> None:
        """Wait until there is more than `position`, or the database is away or back."""
        grown, away = self._grown, self.away
        if self.position <= position and self.away is away:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await grown.wait()

    async def _stop_unfollowed(self) -> None:
        async with self._lock:
            if not self._followers:
                await self.stop()
                self._batches.clear()

    async def _turn(self) -> None:
        signals = self._watcher.signals
        try:
            batch = await read_batch(self._database, self.position)
        except Unavailable:
            self._tell(away=True)
            raise
        if batch is not None:
            self._batches.append(batch)
            self.position = batch.last
            while sum(len(one.changes) for one in self._batches) > self._kept and len(self._batches) > 1:
                self._batches.popleft()
        if batch is not None or self.away:
            self._tell(away=False)
        if batch is None or len(batch.changes) < PAGE:
            await asyncio.sleep(self._pause * max(1.0, self._followers / _AT_THAT_PACE))
            await self._watcher.signal(signals)

    def _tell(self, *, away: bool) -> None:
        self.away = away
        self._grown.set()
        self._grown = asyncio.Event()
