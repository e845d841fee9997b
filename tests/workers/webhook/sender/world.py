"""A simulation around the endpoints of a sender: a table of deliveries in memory, receivers, and a clock that passes as soon as
nothing else is to be done. Anything may happen at any time, including during a query."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from random import Random
from selectors import SelectSelector
from typing import Any, TypeVar
from uuid import UUID

from domain.kernel.errors import Unavailable
from projections.consumers.leases import LeaseLost
from projections.webhook.keys import SHARDS, DeliverySource, shard_of
from projections.webhook.store import (
    BEGINNING,
    DELIVERED,
    FAILED,
    PENDING,
    AttemptOutcome,
    Cursor,
    DeliveryStore,
    EndpointHealthChange,
    Key,
    Page,
    PageRequest,
    PendingDelivery,
    Place,
    WebhookStatus,
)
from workers.webhook.sender.attempt import AttemptResult, DeliveryClient
from workers.webhook.sender.endpoint import Endpoint, SharedParts
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs
from workers.webhook.sender.endpoints import Endpoints
from workers.webhook.sender.outcomes import OutcomeRecorder
from workers.webhook.sender.places import Places
from workers.webhook.sender.retries import RetrySchedule

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
WEBHOOKS = ((UUID(int=1), UUID(int=2)), (UUID(int=4), UUID(int=24)))
"""The webhooks of each source. Two of them, of different sources, are in one shard."""
ORDERING_KEYS = ("a", "b", "c")
DELAYS = (0.0, 5.0, 5.0, 60.0)
ROWS_EACH = 3
OF_A_LANE = 2

T = TypeVar("T")


class _NoWait(SelectSelector):
    loop: SimulatedLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing will ever happen again"
        self.loop.now += max(timeout, 0.0)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop without sockets, whose time passes when all tasks wait."""

    def __init__(self) -> None:
        self.now = 1000.0
        selector = _NoWait()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


@dataclass
class Row:
    """A delivery. `done` is the truth, recorded or not. `excused` is True if it was resent, or its outcome was lost with its shard,
    so it may be sent twice and after later ones."""

    state: int = PENDING
    attempts: int = 0
    due: float = 0.0
    done: bool = False
    excused: bool = False


def place(key: Key) -> Place:
    return key[1], key[0], key[2]


@cache
def cursor_of(webhook: UUID) -> Cursor:
    callbacks = webhook in WEBHOOKS[DeliverySource.CALLBACKS]
    return DeliverySource.CALLBACKS if callbacks else DeliverySource.NOTIFICATIONS, shard_of(webhook)


class Table(DeliveryStore):
    """The statements of the store, over rows in memory. Each shows the rows of one moment between its call and its answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ordered: list[Key] = []
        self._of_webhook: defaultdict[UUID, list[Key]] = defaultdict(list)

    async def last_places(self, cursors: Iterable[Cursor]) -> dict[Cursor, Place]:
        def read() -> dict[Cursor, Place]:
            last: dict[Cursor, Place] = dict.fromkeys(cursors, BEGINNING)
            return last | {cursor_of(key[0]): place(key) for key in self._pending() if cursor_of(key[0]) in last}

        return await self._world.answered(read)

    async def webhooks(self) -> list[UUID]:
        return await self._world.answered(lambda: sorted({webhook for webhook, _, _ in self._pending()}))

    async def read_new(self, after: Mapping[Cursor, Place], *, limit: int) -> dict[Cursor, list[Place]]:
        def read() -> dict[Cursor, list[Place]]:
            new: defaultdict[Cursor, list[Place]] = defaultdict(list)
            for key in self._pending():
                cursor = cursor_of(key[0])
                if cursor in after and place(key) > after[cursor] and len(new[cursor]) < limit:
                    new[cursor].append(place(key))
            return {cursor: places for cursor, places in new.items() if places}

        return await self._world.answered(read)

    async def page(self, request: PageRequest) -> Page:
        def fits(key: Key) -> bool:
            return (key[1], key[2]) > (request.position, request.ordering_key)

        return await self._world.answered(lambda: self._page(request.webhook, fits, limit=request.limit))

    async def lane(self, webhook: UUID, ordering_key: str) -> Page:
        return await self._world.answered(lambda: self._page(webhook, lambda key: key[2] == ordering_key, limit=OF_A_LANE))

    async def probe(self, webhook: UUID) -> PendingDelivery | None:
        def read() -> PendingDelivery | None:
            heads: dict[str, Key] = {}
            for key in self._pending(webhook):
                heads.setdefault(key[2], key)
            now = self._world.now
            first = sorted(heads.values(), key=lambda key: (max(self._world.table[key].due, now), key[1]))[:1]
            return next(map(self._row, first), None)

        return await self._world.answered(read)

    async def webhook_status(self, webhook: UUID) -> WebhookStatus:
        return await self._world.answered(lambda: WebhookStatus(1, enabled=True, failing_since=None))

    def _pending(self, webhook: UUID | None = None) -> list[Key]:
        table = self._world.table
        for key in islice(table, len(self._ordered), None):  # rows are added, and never removed
            insort(self._ordered, key, key=place)
            insort(self._of_webhook[key[0]], key, key=place)
        keys = self._ordered if webhook is None else self._of_webhook[webhook]
        return [key for key in keys if table[key].state == PENDING]

    def _page(self, webhook: UUID, fits: Callable[[Key], bool], *, limit: int) -> Page:
        keys = [key for key in self._pending(webhook) if fits(key)]
        return Page(list(map(self._row, keys[:limit])), more=len(keys) >= limit)

    def _row(self, key: Key) -> PendingDelivery:
        row, now = self._world.table[key], self._world.now
        return PendingDelivery(*key, "{}" if row.due <= now else None, row.attempts, max(row.due - now, 0.0))


class Configs(EndpointConfigs):
    """Webhooks that never change."""

    def __init__(self) -> None: ...

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointConfig]:
        config = EndpointConfig(1, "", as_json=True, disabled=False, headers={}, keys=(), previous_until=None)
        return dict.fromkeys(webhooks, config)


class Receivers(DeliveryClient):
    """Receivers that answer as the world decides."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def send(self, row: PendingDelivery, config: EndpointConfig | None) -> AttemptResult:
        return await self._world.receive(row)


class Recorder(OutcomeRecorder):
    """Records outcomes in the table in memory, under the epoch of the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def record(self, outcome: AttemptOutcome, health: EndpointHealthChange | None) -> None:
        world = self._world

        def write() -> bool:
            row = world.table[outcome.key]
            if outcome.epoch != world.epoch:
                row.done, row.excused = row.state != PENDING, True
                return False
            if row.state == PENDING:
                row.state, row.attempts = outcome.state, outcome.attempts
                row.due = world.now + outcome.wait if outcome.state == PENDING else row.due
            return True

        if not await world.answered(write, may_fail=False):
            raise LeaseLost


class World:
    """Random acts, and the invariants that hold whenever something is sent."""

    def __init__(
        self, random: Random, *, failing: float = 0.0, delays: Sequence[float] = DELAYS, places: int = 8, rows_each: int = ROWS_EACH
    ) -> None:
        self.loop = SimulatedLoop()
        self.random = random
        self.failing = failing
        self.delays = delays
        self.faults = 0.02
        """The share of queries that fail."""
        self.table: dict[Key, Row] = {}
        self.of_lane: defaultdict[tuple[UUID, str], list[Key]] = defaultdict(list)
        self.position = 0
        self.to_insert: tuple[deque[tuple[Key, ...]], ...] = tuple(deque() for _ in WEBHOOKS)
        """The rows that the fan-out of each source has not inserted yet: each source has its own lag."""
        self.epoch = self.noticed_epoch = 0
        self.in_flight: dict[tuple[UUID, str], Key] = {}
        self.hanging: frozenset[UUID] = frozenset()
        """The webhooks whose receivers never answer."""
        self.most_in_flight = 0
        self.breaches: list[AssertionError] = []
        self.parts = SharedParts(
            store=Table(self),
            configs=Configs(),
            client=Receivers(self),
            outcomes=Recorder(self),
            disable=self._never,
            schedule=RetrySchedule(delays),
            rng=random,
            places=Places(places),
            time=lambda: self.now,
            rows_each=rows_each,
        )
        self.endpoints = Endpoints(self.parts)

    @property
    def now(self) -> float:
        return self.loop.now

    def skip(self, seconds: float) -> None:
        """Let time pass in which nothing happens."""
        self.loop.now += seconds

    def run(self, act: Callable[[World], Any]) -> None:
        """Run a coroutine function in a simulated loop, with a sender."""

        async def main() -> None:
            self.take_shards()
            finding = asyncio.create_task(self._find())
            try:
                await act(self)
                assert not finding.done()
                for breach in self.breaches:
                    raise breach
            finally:
                finding.cancel()
                self.endpoints.hold({}, excess=(), until=0.0)
                await asyncio.sleep(0.1)

        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(main())

    async def _find(self) -> None:
        while True:
            more = False
            with suppress(Unavailable):
                more = await self.endpoints.find_new()
            if not more:
                await asyncio.sleep(1.0)

    async def answered(self, read: Callable[[], T], *, may_fail: bool = True) -> T:
        """Return the answer of a query, after a random time."""
        await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01)))
        if may_fail and self.random.random() < self.faults:
            raise Unavailable("the database does not answer")
        answer = read()
        await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01)))
        return answer

    async def receive(self, row: PendingDelivery) -> AttemptResult:
        try:
            self._check(row)
        except AssertionError as breach:  # an endpoint logs what its attempts raise
            self.breaches.append(breach)
        lane = (row.webhook, row.ordering_key)
        self.in_flight[lane] = row.key
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))
        try:
            await asyncio.sleep(15.0 if row.webhook in self.hanging else self.random.choice((0.0, 0.002, 0.02, 3.0)))
        finally:
            del self.in_flight[lane]
        if self.random.random() < 0.02 * (self.failing > 0):
            return AttemptResult(NOON, 0.1, error="no descriptor", unsent=True)
        failed = row.webhook in self.hanging or self.random.random() < self.failing
        pauses = failed and self.random.random() < 0.1 and row.webhook not in self.hanging
        self.table[row.key].done = not failed or row.attempts + 1 == len(self.delays)
        return AttemptResult(NOON, 0.1, 503 if failed else 200, "no" if failed else None, requested_wait=20.0 * pauses)

    def _check(self, delivery: PendingDelivery) -> None:
        webhook, position, ordering_key = delivery.key
        row = self.table[delivery.key]
        assert self.now < self.parts.until
        assert (webhook, ordering_key) not in self.in_flight
        assert sum(endpoint == webhook for endpoint, _ in self.in_flight) < 16
        if not row.excused:
            assert not row.done, "nothing is sent twice without need"
            assert row.attempts == delivery.attempts < len(self.delays)
            earlier = [key for key in self.of_lane[webhook, ordering_key] if key[1] < position]
            assert all(self.table[key].done or self.table[key].excused for key in earlier), "nothing overtakes"

    async def _never(self, webhook: UUID, reason: str) -> None:
        raise AssertionError(f"{webhook}: {reason}")

    # --- acts

    def append(self) -> None:
        """Append a write to the log, for some webhooks of one or both sources."""
        self.position += 1
        for source, webhooks in enumerate(WEBHOOKS):
            called = self.random.sample(webhooks, self.random.randint(0, len(webhooks)))
            keys = [
                (webhook, self.position, key)
                for webhook in called
                for key in self.random.sample(ORDERING_KEYS, self.random.randint(1, 2))
            ]
            self.to_insert[source].append(tuple(keys))

    def insert(self) -> None:
        """Let the fan-out of one source insert some writes, in the order of the log."""
        waiting = self.random.choice(self.to_insert)
        for _ in range(self.random.randint(0, len(waiting))):
            for key in waiting.popleft():
                self.put(key)

    def put(self, key: Key) -> None:
        self.table[key] = Row(due=self.now)
        self.of_lane[key[0], key[2]].append(key)

    def resend(self) -> None:
        finished = [key for key, row in self.table.items() if row.state != PENDING]
        if finished:
            key = self.random.choice(finished)
            self.table[key] = Row(due=self.now, excused=True)
            self.endpoints.read_again(key[0])

    def listen_again(self) -> None:
        self.endpoints.read_all_again()

    def revoke(self) -> None:
        """Hand all shards to another member and back: what is not recorded is lost. The member may notice it late."""
        self.epoch += 1
        if self.random.random() < 0.5:
            self._hold()
        else:
            self.loop.call_later(2.0, self._hold)

    def release(self) -> None:
        """Ask the member to hand over a shard, and let it keep the shard in the end."""
        self._hold(shard_of(WEBHOOKS[0][0]))
        self.loop.call_later(self.random.choice((0.01, 20.0)), self._hold)

    def expire(self) -> None:
        """Let the leases run out, and renew them later."""
        self.parts.until = self.now
        self.loop.call_later(5.0, self._hold)

    def take_shards(self) -> None:
        self.epoch += 1
        self._hold()

    def _hold(self, *excess: int) -> None:
        """Let the member notice which shards it owns. What was in flight under a former epoch is cancelled."""
        if self.noticed_epoch != self.epoch:
            self.noticed_epoch = self.epoch
            for row in self.table.values():
                row.excused = row.excused or row.state == PENDING
                row.done = row.state != PENDING
        self.endpoints.hold(dict.fromkeys(range(SHARDS), self.epoch), excess=excess, until=float("inf"))

    async def act(self, *, rare: bool) -> None:
        """Do something, then let some time pass."""
        acts = (self.append, self.append, self.append, self.insert, self.insert, self.resend)
        self.random.choice((*acts, *((self.revoke, self.listen_again, self.release, self.expire) if rare else ())))()
        await asyncio.sleep(self.random.choice((0.0, 0.001, 0.001, 0.01, 0.01, 0.1, 2.0, 40.0)))

    async def drain(self) -> None:
        """Deliver everything to working receivers."""
        self.failing = self.faults = 0.0
        while any(self.to_insert):
            self.insert()
        for _ in range(1000):
            await asyncio.sleep(1.0)
            if self.is_finished and not self.tasks:
                return
        raise AssertionError({key: row for key, row in self.table.items() if row.state == PENDING})

    @property
    def tasks(self) -> list[Endpoint]:
        """The endpoints with something to do."""
        return list(self.endpoints._tasks)

    @property
    def is_finished(self) -> bool:
        """True if every row is delivered, or failed after its last attempt."""
        return all(
            row.state == DELIVERED or (row.state == FAILED and row.attempts == len(self.delays)) for row in self.table.values()
        )
