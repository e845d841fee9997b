"""The growth of the log for followers of live changes: a process has one reader, whatever the number of followers.

The feed holds only what every follower may know: which aggregate changed, how and where. The content of events is not read.
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
from projections.kernel.database.database import Database, Pool
from projections.log.log_watcher import LogWatcher
from projections.log.reader import head

PAGE: Final = 1000
BUFFERED: Final = 10_000
"""The number of changes that are buffered for followers. A follower that is further behind reads the log again."""

_PAUSE: Final = 0.2
"""The number of seconds between two looks at a growing log. Followers get all changes since the last look in one piece."""
_AT_THAT_PACE: Final = 80
"""The number of followers up to which `_PAUSE` applies. With more followers the pause grows in proportion, because the cost of a
piece is that of sending it to each of them."""
_PAGE: Final = """
SELECT position, originator_id, originator_version, topic, recorded_at FROM events WHERE position > %s ORDER BY position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class LogChange:
    """An event of the log without its content."""

    position: int
    aggregate: str
    id: str
    version: int
    type: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Selects the changes that a follower receives: any of each list, all if a list is empty. `hidden` holds the kinds that it may
    not see."""

    aggregates: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    def wants(self, change: LogChange) -> bool:
        return (
            change.aggregate not in self.hidden
            and (not self.aggregates or change.aggregate in self.aggregates)
            and (not self.ids or change.id in self.ids)
            and (not self.types or change.type in self.types)
        )


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Consecutive changes from `first` to `last`. Their encoded form is made once for all followers with the same filter."""

    changes: Sequence[LogChange]
    _encoded: dict[ChangeFilter, bytes] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.changes[0].position

    @property
    def last(self) -> int:
        return self.changes[-1].position

    def encoded(self, selection: ChangeFilter, encode: Callable[[LogChange], bytes]) -> bytes:
        text = self._encoded.get(selection)
        if text is None:
            text = b"".join(encode(change) for change in self.changes if selection.wants(change))
            self._encoded[selection] = text
        return text


async def read_batch(database: Pool, after: int) -> ChangeBatch | None:
    """Return the next changes after a position; None at the log's end."""
    rows = await database.rows(_PAGE, (after, PAGE))
    if not rows:
        return None
    changes = []
    for position, stream, version, topic, recorded_at in rows:
        name = StreamName.read(stream)
        changes.append(LogChange(position, name.kind, name.key, version, topic, recorded_at))
    return ChangeBatch(changes)


class ChangeFeed(BackgroundTask):
    """Reads the log while it is followed. `position` is the last position that was read."""

    WHAT: ClassVar[str] = "feed of changes"

    def __init__(self, database: Database, watcher: LogWatcher, *, buffered: int = BUFFERED, pause: float = _PAUSE) -> None:
        self.lists = database.lists
        """The pool for followers that read changes that are not buffered, in turns with other readers."""
        self._database = database
        self._watcher = watcher
        self._buffered = buffered
        self._pause = pause
        self._batches: deque[ChangeBatch] = deque()
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
        """Count the caller as a follower. The first follower starts the reader at the log's head, the last one stops it. Raise
        `Unavailable` if the log cannot be read."""
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

    def after(self, position: int) -> ChangeBatch | None:
        """Return the buffered batch with the change after this position; None at the end. Raise `LookupError` if it is no longer
        buffered."""
        if position >= self.position:
            return None
        for batch in self._batches:
            if batch.last > position:
                if batch.first > position + 1:
                    break
                return batch if batch.first == position + 1 else ChangeBatch(batch.changes[position + 1 - batch.first :])
        raise LookupError(position)

    async def grown(self, position: int, *, seconds: float) -> None:
        """Wait until there are changes after `position`, or the database becomes unavailable or available again."""
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
            while sum(len(earlier.changes) for earlier in self._batches) > self._buffered and len(self._batches) > 1:
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
