"""The pending deliveries of one endpoint that are in memory, in one lane for each ordering key. The rest stays in the table. This
module does no input or output.

Deliveries with one ordering key (about one Event or one job) are sent one after the other, by position. A delivery is recorded
before the next one of its lane is sent, so the table always shows what a lane has to send next.

Each ordering key with pending deliveries before the frontier of the pages is in one state:

| state | in memory |
|---|---|
| ready | a lane in the queue of ready lanes |
| in progress | a lane that a worker has taken |
| waiting | the key, and the time of its retry; no delivery |
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import takewhile
from typing import Final

from projections.webhook.store import Page, PendingDelivery

BEGINNING: Final = (0, "")
MOST_KEYS: Final = 50_000
"""The number of ordering keys in memory above which no further page is read."""


class Lane:
    """Deliveries with one ordering key. `last` is the position of the last one that was in memory. `has_unread` is True if others
    may be pending; they are read from the table when those in memory are done. `is_read` is True during such a read."""

    __slots__ = ("has_unread", "is_read", "key", "last", "rows")

    def __init__(self, key: str, *, has_unread: bool) -> None:
        self.key = key
        self.has_unread = has_unread
        self.is_read = False
        self.last = 0
        self.rows: list[PendingDelivery] = []  # an empty deque takes ten times as much memory


class Lanes:
    """The lanes of one endpoint."""

    def __init__(self) -> None:
        self.frontier = BEGINNING
        """The place of the last row of the last page."""
        self.has_unread = True
        """True if there may be rows after the frontier."""
        self._lanes: dict[str, Lane] = {}
        self._ready: deque[Lane] = deque()
        self._waiting: set[str] = set()
        self._times: list[tuple[float, str]] = []
        self._rows = 0
        self._ended_since: set[str] | None = None
        """The keys of the lanes that have ended since the read of a page began; None if no page is being read."""

    def __len__(self) -> int:
        return len(self._lanes) + len(self._waiting)

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    @property
    def next_due(self) -> float | None:
        """The time of the first retry."""
        return self._times[0][0] if self._times else None

    def needs_page(self, limit: int) -> bool:
        """Return True when half of the rows that may be in memory are sent, so that few large pages are read instead of many small
        ones."""
        return self.has_unread and 2 * self._rows <= limit and len(self) < MOST_KEYS

    def begin_page(self, limit: int) -> int:
        """Begin to read a page, and return its limit. Whatever sets `has_unread` from now on may be missing in it."""
        self.has_unread, self._ended_since = False, set()
        return limit - self._rows

    def end_page(self, page: Page | None, now: float) -> None:
        """Take the rows of a page. Without a page, or if all rows were forgotten meanwhile, it is to be read again."""
        ended, self._ended_since = self._ended_since, None
        if page is None or ended is None:
            self.has_unread = True
            return
        for row in page.rows:
            self.frontier = (row.position, row.ordering_key)
            self._offer(row, now, ended=ended)
        self.has_unread = self.has_unread or page.more

    def _offer(self, row: PendingDelivery, now: float, *, ended: set[str]) -> None:
        key = row.ordering_key
        lane = self._lanes.get(key)
        if lane is None:
            if key in self._waiting:
                return
            if row.attempts or row.wait:
                self.add_waiting(key, now + row.wait)
                return
            lane = self._lanes[key] = Lane(key, has_unread=key in ended)  # the row of a lane that has ended may be sent already
            self._ready.append(lane)
        if lane.is_read or row.wait:  # a row that waits is behind others if an operator resent these
            lane.has_unread = True
        elif not lane.has_unread and row.position > lane.last:
            self._append(lane, row)

    def _append(self, lane: Lane, row: PendingDelivery) -> None:
        lane.rows.append(row)
        lane.last = max(lane.last, row.position)
        self._rows += 1

    def add_waiting(self, key: str, due: float) -> None:
        """Add an ordering key without a lane, whose first delivery is to be sent at a time."""
        self._waiting.add(key)
        heapq.heappush(self._times, (due, key))

    def take_ready(self) -> Lane | None:
        return self._ready.popleft() if self._ready else None

    def take_due(self, now: float) -> Lane | None:
        """Return a lane whose retry is due. It must be read from the table."""
        if not self._times or self._times[0][0] > now:
            return None
        _, key = heapq.heappop(self._times)
        self._waiting.remove(key)
        lane = self._lanes[key] = Lane(key, has_unread=True)
        return lane

    def begin_read(self, lane: Lane) -> None:
        """Begin to read a lane. Whatever sets `has_unread` from now on may be missing in the result."""
        lane.has_unread, lane.is_read = False, True

    def end_read(self, lane: Lane, page: Page | None) -> None:
        """Take the first rows of a lane, up to the first that waits. Without a page it is to be read again."""
        lane.is_read = False
        ready = [] if page is None else list(takewhile(lambda row: not row.wait, page.rows))
        for row in ready:
            self._append(lane, row)
        lane.has_unread = lane.has_unread or page is None or page.more or len(ready) < len(page.rows)

    def next_row(self, lane: Lane) -> PendingDelivery | None:
        """Return the next row of a lane, which is no longer among its rows."""
        if not lane.rows:
            return None
        self._rows -= 1
        return lane.rows.pop(0)

    def done(self, lane: Lane) -> None:
        """Return a lane after a delivery has arrived or failed."""
        if lane.rows or lane.has_unread:
            self._ready.append(lane)
        else:
            self._end(lane)

    def wait(self, lane: Lane, due: float) -> None:
        """Return a lane whose first delivery is to be sent at a later time. It is read again then."""
        self._rows -= len(lane.rows)
        self._end(lane)
        self.add_waiting(lane.key, due)

    def forget(self) -> None:
        """Forget all rows. Pages are read from the beginning; a lane in progress is read again after its present delivery."""
        for lane in self._ready:
            del self._lanes[lane.key]
        for lane in self._lanes.values():
            lane.rows.clear()
            lane.has_unread = True
        self._ready.clear()
        self._waiting.clear()
        self._times.clear()
        self._rows, self._ended_since = 0, None
        self.frontier, self.has_unread = BEGINNING, True

    def _end(self, lane: Lane) -> None:
        del self._lanes[lane.key]
        if self._ended_since is not None:
            self._ended_since.add(lane.key)
