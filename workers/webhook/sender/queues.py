"""The pending deliveries of one endpoint that are in memory, in one queue for each ordering key. The rest stays in the table. This
module does no input or output.

Deliveries with one ordering key (about one Event or one job) are sent one after the other, by position. While a queue waits for a
retry, the other queues continue.

Rows are offered in the order of (position, ordering key). The last offered place is the frontier. Each row up to it is in one
state:

| state | where it is |
|---|---|
| waiting | in `waiting` of its queue |
| in flight | in `in_flight` of its queue |
| unread | in the table only; its queue has `has_more` and the row's position is after `read_through` |
| done | delivered or failed |

A queue that waits for a retry has no rows in memory, only the time until which it backs off.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from projections.webhook.store import PendingDelivery

BEGINNING: Final = (0, "")


class OrderedQueue:
    """Deliveries with one ordering key. `backing_off_until` is None unless the queue waits for a retry."""

    __slots__ = ("backing_off_until", "has_more", "in_flight", "key", "read_through", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.waiting: list[PendingDelivery] = []  # an empty deque takes ten times as much memory
        self.in_flight: PendingDelivery | None = None
        self.read_through = 0
        self.has_more = False
        self.backing_off_until: float | None = None


class OrderedQueues:
    """The queues of one endpoint."""

    def __init__(self, mark_ready: Callable[[], None], timed: Callable[[], None]) -> None:
        """`mark_ready` is called when there is something to read, `timed` when `next_due` may have changed."""
        self._mark_ready = mark_ready
        self._timed = timed
        self._backing_off: list[tuple[float, str]] = []
        self._queues: dict[str, OrderedQueue] = {}
        self._first_attempts: deque[OrderedQueue] = deque()
        self._retries: deque[OrderedQueue] = deque()
        self.to_refill: dict[str, OrderedQueue] = {}
        """The queues without rows in memory that have more in the table."""
        self.frontier: tuple[int, str] = BEGINNING
        self.waiting = 0

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def has_first(self) -> bool:
        """True if `take` has a first attempt."""
        return bool(self._first_attempts)

    @property
    def has_retry(self) -> bool:
        """True if `take` has a retry."""
        return bool(self._retries)

    def clear(self) -> None:
        """Forget all rows except those in flight. Reading restarts at the beginning."""
        self._queues = {key: queue for key, queue in self._queues.items() if queue.in_flight is not None}
        for queue in self._queues.values():
            queue.waiting.clear()
            queue.read_through, queue.has_more, queue.backing_off_until = 0, False, None
        self._first_attempts.clear()
        self._retries.clear()
        self._backing_off.clear()
        self.to_refill.clear()
        self.frontier = BEGINNING
        self.waiting = 0

    def offer(self, row: PendingDelivery, now: float) -> None:
        """Take the next row of the table. If the outcome of a row is already available but not written, call `pass_over`
        instead."""
        self.frontier = (row.position, row.ordering_key)
        queue = self._queues.get(row.ordering_key)
        if queue is None:
            queue = self._queues[row.ordering_key] = OrderedQueue(row.ordering_key)
        elif queue.has_more:
            if row.position <= queue.read_through:  # resent by an operator
                queue.read_through = row.position - 1
                self._wake(queue)
            return
        elif queue.in_flight is not None and queue.in_flight.position == row.position:
            return
        self._append(queue, row, now)

    def pass_over(self, position: int, ordering_key: str) -> None:
        self.frontier = (position, ordering_key)

    def readable_through(self, queue: OrderedQueue) -> int:
        """Return the last position that `refill` may receive. Rows after the frontier will be offered."""
        position, key = self.frontier
        return position if queue.key <= key else position - 1

    def refill(self, queue: OrderedQueue, rows: Iterable[PendingDelivery], *, read_to: int | None, now: float) -> None:
        """Add rows from the table, in order. There may be more rows after the position `read_to`; None if there are none."""
        del self.to_refill[queue.key]
        queue.has_more = False
        for row in rows:
            self._append(queue, row, now)
            if queue.has_more:
                return
        if read_to is not None:
            queue.has_more, queue.read_through = True, read_to
        if not queue.waiting:
            self._continue(queue)

    def probe(self, row: PendingDelivery) -> None:
        """Take a row that is due and the first of its ordering key, regardless of the rows between it and the frontier."""
        queue = self._queues[row.ordering_key] = OrderedQueue(row.ordering_key)
        self._append(queue, row, 0.0)

    def take(self, *, retry: bool) -> PendingDelivery:
        """Return the next row to send."""
        queue = (self._retries if retry else self._first_attempts).popleft()
        queue.in_flight = queue.waiting.pop(0)
        self.waiting -= 1
        return queue.in_flight

    def done(self, row: PendingDelivery) -> None:
        """Record that the row is no longer in flight. A second call does nothing."""
        queue = self._queues.get(row.ordering_key)
        if queue is not None and queue.in_flight is row:
            queue.in_flight = None
            self._continue(queue)

    def retry_later(self, row: PendingDelivery, due: float) -> None:
        """Record a failure: the queue is read again from this row when the retry is due."""
        queue = self._queues[row.ordering_key]
        queue.in_flight = None
        before = [row.position - 1]
        if queue.waiting:
            before.append(queue.waiting[0].position - 1)
            self.waiting -= len(queue.waiting)
            queue.waiting.clear()
        if queue.has_more:
            before.append(queue.read_through)
        queue.has_more, queue.read_through = True, min(before)
        if queue.read_through == row.position - 1:
            self._back_off(queue, due)
        else:  # an earlier row was resent by an operator
            self.to_refill[queue.key] = queue

    def _append(self, queue: OrderedQueue, row: PendingDelivery, now: float) -> None:
        if row.wait > 0:
            queue.has_more, queue.read_through = True, row.position - 1
            if not queue.waiting and queue.in_flight is None:
                self._back_off(queue, now + row.wait)
            return
        queue.waiting.append(row)
        queue.read_through = row.position
        self.waiting += 1
        if len(queue.waiting) == 1 and queue.in_flight is None:
            self._ready(queue)

    def _ready(self, queue: OrderedQueue) -> None:
        (self._retries if queue.waiting[0].attempts else self._first_attempts).append(queue)

    def _continue(self, queue: OrderedQueue) -> None:
        if queue.waiting:
            self._ready(queue)
        elif queue.has_more:
            self.to_refill[queue.key] = queue
        else:
            del self._queues[queue.key]

    @property
    def timed_entries(self) -> int:
        """The number of times in memory, of queues that back off and of some that no longer do."""
        return len(self._backing_off)

    @property
    def next_due(self) -> float | None:
        """The time at which the first queue has waited long enough."""
        while self._backing_off and not self._is_backing_off(*self._backing_off[0]):
            heapq.heappop(self._backing_off)
        return self._backing_off[0][0] if self._backing_off else None

    def wake_due(self, now: float) -> None:
        while (due := self.next_due) is not None and due <= now:
            self._wake(self._queues[heapq.heappop(self._backing_off)[1]])

    def _back_off(self, queue: OrderedQueue, due: float) -> None:
        """Let a queue wait until a time. A queue that is woken earlier leaves its entry in the heap. The heap is rebuilt when most
        of its entries are obsolete."""
        queue.backing_off_until = due
        heapq.heappush(self._backing_off, (due, queue.key))
        if len(self._backing_off) > 2 * len(self._queues):
            self._backing_off = [entry for entry in self._backing_off if self._is_backing_off(*entry)]
            heapq.heapify(self._backing_off)
        self._timed()

    def _is_backing_off(self, due: float, key: str) -> bool:
        queue = self._queues.get(key)
        return queue is not None and queue.backing_off_until == due

    def _wake(self, queue: OrderedQueue) -> None:
        queue.backing_off_until = None
        if queue.in_flight is None and not queue.waiting:
            self.to_refill[queue.key] = queue
            self._mark_ready()
