"""The reader of the log of a process: it reads each page once, for all consumers and all wake-ups of the process.

Its source is the log, or a broker. A consumer gets the records of its topics; as long as there are none, nothing of it runs. The
latest pages stay in memory for consumers that are at work. A consumer that is further behind leaves them, and reads the log for
itself until it has caught up, so it holds up no other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from projections.log.reader import LoggedEvent, head
from projections.log.transactions import writes
from workers.kernel.feed import LIMIT, Batch, Feed
from workers.kernel.log_feed import MOST_BYTES, LogFeed

_RETAINED: Final = MOST_BYTES
"""The bytes of the latest pages that stay in memory, and the number of their records."""
_RECORDS: Final = 4 * LIMIT
_REST: Final = 0.01
"""Seconds between two reads of a log that grows: under load it does so hundreds of times a second."""
_LONG_REST: Final = 0.03
_MANY: Final = 16


class Selection:
    """The records that a reader gets. Each of `topics` is the topic of an event, or a kind of aggregates for all of its events;
    None selects everything."""

    def __init__(self, topics: Collection[str] | None) -> None:
        self.kinds = None if topics is None else frozenset(topic.partition(".")[0] for topic in topics)
        self._topics = topics

    def selects(self, topic: str) -> bool:
        return self._topics is None or topic in self._topics or topic.partition(".")[0] in self._topics

    def concerns(self, page: Page) -> bool:
        return any(map(self.selects, page.topics))


@dataclass(frozen=True, slots=True)
class Page:
    """The records after the position `after`, up to `through`."""

    after: int
    records: Sequence[LoggedEvent]
    through: int
    topics: frozenset[str]
    size: int


Watcher = Callable[[Page | None], None]
"""Called with each page; with None if pages were left out."""


class LogReader(BackgroundTask):
    """Reads `source` for the feeds and the watchers of a process. When a consumer begins, it goes to the end of the log, where that
    consumer arrives when it has caught up."""

    WHAT: ClassVar[str] = "reader of the log"

    def __init__(self, database: Database, log_watcher: LogWatcher, *, source: Callable[[], Feed]) -> None:
        """`source` makes the source when the reader starts."""
        self._database = database
        self._log_watcher = log_watcher
        self._make_source = source
        self._source: Feed | None = None
        self._pages: deque[Page] = deque()
        self._size = self._count = self._restarts = 0
        self._timeline = database.timeline
        self.position: int | None = None
        """The position up to which the source was read; None if it was not read yet."""
        self._waiting: set[SharedFeed] = set()
        self._watchers: list[Watcher] = []
        self._needed = asyncio.Event()

    @property
    def reads_log_since(self) -> float | None:
        return None if self._source is None else self._source.reads_log_since

    def feed(self, topics: Collection[str] | None) -> SharedFeed:
        """Return the access of a consumer to the records of these topics."""
        selection = Selection(topics)
        return SharedFeed(self, selection, own=LogFeed(self._database, self._log_watcher, kinds=selection.kinds))

    def watch(self, watcher: Watcher) -> None:
        """Call the watcher for each page from now on."""
        self._watchers.append(watcher)
        self._needed.set()

    def reached(self) -> Callable[[], int | None]:
        """Read on from now on, also without consumers, and return a function that returns the position that was reached."""
        self.watch(lambda _: None)
        return lambda: self.position

    async def stop(self) -> None:
        await super().stop()
        if self._source is not None:
            await self._source.close()

    def after(self, position: int, selection: Selection, *, limit: int) -> Batch | None:
        """Return the selected records after a position, as whole writes, and about as many bytes as a page has at most; None if the
        pages after it are not in memory."""
        if self.position is None or (position < self.position and not (self._pages and self._pages[0].after <= position)):
            return None
        records: list[LoggedEvent] = []
        size, through = 0, position
        for page in self._following(position):
            if selection.concerns(page):
                further = [record for record in page.records if record.position > position and selection.selects(record.topic)]
                size += sum(len(record.state) for record in further)
                if records and size > MOST_BYTES:
                    return Batch(records, through)
                records += further
            through = page.through
            if len(records) >= limit:
                return _cut(records, limit, through=through)
        return Batch(records, max(position, self.position))

    def _following(self, position: int) -> Sequence[Page]:
        """Return the pages with records after a position."""
        following: list[Page] = []
        for page in reversed(self._pages):
            if page.through <= position:
                break
            following.append(page)
        return following[::-1]

    def wait(self, feed: SharedFeed) -> None:
        """Have a feed woken by the next page with records for it."""
        if self.position is None:
            self.restart(feed.passed)
        self._waiting.add(feed)
        self._needed.set()

    def leave(self, feed: SharedFeed) -> None:
        self._waiting.discard(feed)

    def restart(self, position: int) -> None:
        """Continue at a position. The pages before it are forgotten, since the log may have lost them."""
        self.position = position
        self._restarts += 1
        self._pages.clear()
        self._size = self._count = 0
        for feed in self._waiting:
            feed.interrupt()
        for watch in self._watchers:
            watch(None)

    async def _turn(self) -> None:
        if not (self._waiting or self._watchers):
            self._needed.clear()
            await self._needed.wait()
        if self._source is None:
            self._source = self._make_source()
        timeline = self._database.timeline
        if self.position is None or timeline != self._timeline:
            restarts, end = self._restarts, await head(self._database)
            self._timeline = timeline
            if restarts == self._restarts:
                self.restart(end)
            return
        after, restarts = self.position, self._restarts
        batch = await self._source.fetch(after)
        if batch.through > after and restarts == self._restarts:
            self._add(batch, after)
            await asyncio.sleep(_REST if len(batch.records) < _MANY else _LONG_REST)

    def _add(self, batch: Batch, after: int) -> None:
        size = sum(len(record.state) for record in batch.records)
        page = Page(after, batch.records, batch.through, frozenset(record.topic for record in batch.records), size)
        self._pages.append(page)
        self._size += size
        self._count += len(page.records)
        while len(self._pages) > 1 and (self._size > _RETAINED or self._count > _RECORDS):
            oldest = self._pages.popleft()
            self._size -= oldest.size
            self._count -= len(oldest.records)
        self.position = batch.through
        for watch in self._watchers:
            watch(page)
        for feed in list(self._waiting):
            feed.see(page)


class SharedFeed:
    """The access of one consumer to the pages that a process reads. `own` reads the log for this consumer while it is behind."""

    def __init__(self, reader: LogReader, selection: Selection, *, own: LogFeed) -> None:
        self._reader = reader
        self._selection = selection
        self._own = own
        self._woken = asyncio.Event()
        self.passed = 0

    @property
    def reads_log_since(self) -> float | None:
        return self._reader.reads_log_since

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        """Return the records after a position. If there are none, wait until there are some or the wait is interrupted."""
        self.passed = after
        batch = self._reader.after(after, self._selection, limit=limit)
        if batch is None and self._reader.position is not None:
            return await self._fetch_own(after, limit)
        if batch is not None and batch.records:
            return batch
        self.passed = after if batch is None else batch.through
        try:
            self._reader.wait(self)
            await self._woken.wait()
        finally:
            self._woken.clear()
            self._reader.leave(self)
        return self._reader.after(self.passed, self._selection, limit=limit) or Batch((), self.passed)

    async def _fetch_own(self, after: int, limit: int) -> Batch:
        batch = await self._own.fetch(after, limit=limit)
        return Batch([record for record in batch.records if self._selection.selects(record.topic)], batch.through)

    def see(self, page: Page) -> None:
        """Wake the consumer if the page has records for it; otherwise it has passed the page."""
        if page.after > self.passed or self._selection.concerns(page):
            self._woken.set()
        elif not self._woken.is_set():
            self.passed = max(self.passed, page.through)

    def restart(self, head: int) -> None:
        self._reader.restart(head)

    def interrupt(self) -> None:
        self._woken.set()

    async def close(self) -> None:
        await self._own.close()


def _cut(records: Sequence[LoggedEvent], limit: int, *, through: int) -> Batch:
    """Return about `limit` of these records, up to the end of a write; all of them are read up to `through`."""
    cut: list[LoggedEvent] = []
    for write in writes(records):
        if len(cut) >= limit:
            return Batch(cut, cut[-1].position)
        cut += write
    return Batch(cut, through)
