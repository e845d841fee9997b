"""What of an endpoint's deliveries is in memory, lane by lane; the rest stays in the table. Pure. Issue 5, "Delivery".

A lane is what keeps order: the deliveries about one Event. One of them is under way at a time, in the order of their positions, and
a lane whose first delivery waits for another try holds up nobody but itself.

Rows are offered in the order of (position, lane). The last one offered is the frontier, and of every row up to it one thing is
true: it waits here; or it is under way; or its lane is marked `more` and it lies behind the lane's `known` position, to be read
when its turn comes; or it is done. A lane that waits for a try keeps no row at all, only when to read on.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

from projections.deliveries.ledger import PendingDelivery

BEGINNING: Final = (0, "")


class Agenda:
    """What is to be done at which time. Who is called finds out itself whether that still matters. `sooner` is called when the next
    time has come nearer."""

    def __init__(self, sooner: Callable[[], None]) -> None:
        self._sooner = sooner
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, due: float, wake: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (due, next(self._numbers), wake))
        if self._heap[0][2] is wake:
            self._sooner()

    @property
    def next_due(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()


class Lane:
    """`asleep` until then; None: awake."""

    __slots__ = ("asleep", "flying", "key", "known", "more", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.waiting: list[PendingDelivery] = []  # an empty deque takes ten times as much room
        self.flying: PendingDelivery | None = None
        self.known = 0
        self.more = False
        self.asleep: float | None = None


class Lanes:
    """The lanes of one endpoint."""

    def __init__(self, agenda: Agenda, awake: Callable[[], None]) -> None:
        """`awake` is called when there may be something to read or to send, by the passing of time."""
        self._agenda = agenda
        self._awake = awake
        self._lanes: dict[str, Lane] = {}
        self._first: deque[Lane] = deque()
        self._late: deque[Lane] = deque()
        self.hungry: dict[str, Lane] = {}
        """Lanes that have sent all they had in memory and go on in the table."""
        self.frontier: tuple[int, str] = BEGINNING
        self.waiting = 0

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def first(self) -> bool:
        """Whether a first try can be taken."""
        return bool(self._first)

    @property
    def late(self) -> bool:
        """Whether a later try can be taken."""
        return bool(self._late)

    def forget(self) -> None:
        """Read all of it again, from the beginning; what is under way stays so."""
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane.flying is not None}
        for lane in self._lanes.values():
            lane.waiting.clear()
            lane.known, lane.more = 0, False
        self._first.clear()
        self._late.clear()
        self.hungry.clear()
        self.frontier = BEGINNING
        self.waiting = 0

    def offer(self, row: PendingDelivery, now: float) -> None:
        """The next row of the table. One that is done already, though not in the table, is offered to `pass_over`."""
        self.frontier = (row.position, row.lane)
        lane = self._lanes.get(row.lane)
        if lane is None:
            lane = self._lanes[row.lane] = Lane(row.lane)
        elif lane.more:
            if row.position <= lane.known:  # sent again by hand
                lane.known = row.position - 1
                self._wake(lane)
            return
        elif lane.flying is not None and lane.flying.position == row.position:
            return
        self._append(lane, row, now)

    def pass_over(self, position: int, lane: str) -> None:
        self.frontier = (position, lane)

    def through(self, lane: Lane) -> int:
        """Up to which position a lane may be read on: what lies beyond the frontier will be offered."""
        position, key = self.frontier
        return position if lane.key <= key else position - 1

    def feed(self, lane: Lane, rows: Iterable[PendingDelivery], *, read_to: int | None, now: float) -> None:
        """What a hungry lane has in the table, in order. `read_to`: there may be more behind that position; None: there is not."""
        del self.hungry[lane.key]
        lane.more = False
        for row in rows:
            self._append(lane, row, now)
            if lane.more:
                return
        if read_to is not None:
            lane.more, lane.known = True, read_to
        if not lane.waiting:
            self._go_on(lane)

    def take(self, *, late: bool) -> PendingDelivery:
        """The next to send."""
        lane = (self._late if late else self._first).popleft()
        lane.flying = lane.waiting.pop(0)
        self.waiting -= 1
        return lane.flying

    def done(self, row: PendingDelivery) -> None:
        lane = self._lanes[row.lane]
        lane.flying = None
        self._go_on(lane)

    def again(self, row: PendingDelivery, due: float) -> None:
        """It failed and is tried again: the lane is read on from there, when that is due."""
        lane = self._lanes[row.lane]
        lane.flying = None
        before = [row.position - 1]
        if lane.waiting:
            before.append(lane.waiting[0].position - 1)
            self.waiting -= len(lane.waiting)
            lane.waiting.clear()
        if lane.more:
            before.append(lane.known)
        lane.more, lane.known = True, min(before)
        if lane.known == row.position - 1:
            self._sleep(lane, due)
        else:  # one before it was sent again by hand
            self.hungry[lane.key] = lane

    def _append(self, lane: Lane, row: PendingDelivery, now: float) -> None:
        if row.wait > 0:
            lane.more, lane.known = True, row.position - 1
            if not lane.waiting and lane.flying is None:
                self._sleep(lane, now + row.wait)
            return
        lane.waiting.append(row)
        lane.known = row.position
        self.waiting += 1
        if len(lane.waiting) == 1 and lane.flying is None:
            self._ready(lane)

    def _ready(self, lane: Lane) -> None:
        (self._late if lane.waiting[0].attempts else self._first).append(lane)

    def _go_on(self, lane: Lane) -> None:
        if lane.waiting:
            self._ready(lane)
        elif lane.more:
            self.hungry[lane.key] = lane
        else:
            del self._lanes[lane.key]

    def _sleep(self, lane: Lane, due: float) -> None:
        lane.asleep = due
        self._agenda.at(due, lambda: self._due(lane, due))

    def _due(self, lane: Lane, due: float) -> None:
        if lane.asleep == due and self._lanes.get(lane.key) is lane:
            self._wake(lane)

    def _wake(self, lane: Lane) -> None:
        lane.asleep = None
        if lane.flying is None and not lane.waiting:
            self.hungry[lane.key] = lane
            self._awake()
