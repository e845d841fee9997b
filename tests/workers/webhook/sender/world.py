"""A table of deliveries in memory that answers like the real statements, and a simulation around a reader in which anything may
happen at any time, including during a query."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from random import Random
from uuid import UUID

from projections.webhook.endpoint_health import EndpointFailures
from projections.webhook.keys import SHARDS, DeliverySource, shard_of
from projections.webhook.store import (
    BEGINNING,
    DELIVERED,
    FAILED,
    PENDING,
    Cursor,
    DeliveryStore,
    Key,
    PageRequest,
    PendingDelivery,
    Place,
    QueueRequest,
)
from workers.kernel.metrics import WorkerMetrics
from workers.webhook.sender.attempt import AttemptResult
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_state import TimeCame, Unsendable
from workers.webhook.sender.outcome_handler import OutcomeHandler
from workers.webhook.sender.reader import DeliveryReader
from workers.webhook.sender.retries import RetrySchedule
from workers.webhook.sender.scheduler import DeliveryScheduler, PendingOutcome, ScheduledAttempt

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
WEBHOOKS = ((UUID(int=1), UUID(int=2)), (UUID(int=4), UUID(int=24)))
"""The webhooks of each source. Two of them, of different sources, are in one shard."""
ORDERING_KEYS = ("a", "b", "c")
DELAYS = (0.0, 5.0, 5.0, 60.0)
CAPACITY = 3


@dataclass
class Row:
    """A delivery. `done` is the truth, written or not. `excused` is True if it was resent, or its outcome was lost with its shard,
    so it may be sent twice and after later ones."""

    state: int = PENDING
    attempts: int = 0
    due: float = 0.0
    done: bool = False
    excused: bool = False


def place(key: Key) -> Place:
    return key[1], key[0], key[2]


def cursor_of(key: Key) -> Cursor:
    return _cursor_of_webhook(key[0])


@cache
def _cursor_of_webhook(webhook: UUID) -> Cursor:
    source = next(source for source, webhooks in zip(DeliverySource, WEBHOOKS, strict=True) if webhook in webhooks)
    return source, shard_of(webhook)


class Twin(DeliveryStore):
    """The statements of the store, over rows in memory."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ordered: list[Key] = []

    async def last_places(self, cursors: Iterable[Cursor]) -> dict[Cursor, Place]:
        results = {
            cursor: max((place(key) for key in self._pending() if cursor_of(key) == cursor), default=BEGINNING)
            for cursor in cursors
        }
        self._world.meanwhile()
        return results

    async def webhooks(self) -> list[UUID]:
        result = sorted({webhook for webhook, _, _ in self._pending()})
        self._world.meanwhile()
        return result

    async def read_new(self, after: Mapping[Cursor, Place], *, limit: int) -> dict[Cursor, list[PendingDelivery]]:
        result: defaultdict[Cursor, list[Key]] = defaultdict(list)
        for key in self._pending():
            cursor = cursor_of(key)
            if cursor in after and place(key) > after[cursor] and len(result[cursor]) < limit:
                result[cursor].append(key)
        rows = iter(self._answered([key for keys in result.values() for key in keys]))
        return {cursor: [next(rows) for _ in keys] for cursor, keys in result.items() if keys}

    async def read_pages(self, requests: Sequence[PageRequest]) -> list[PendingDelivery]:
        results: list[Key] = []
        for request in requests:
            page = [
                key
                for key in self._pending()
                if key[0] == request.webhook and (key[1], key[2]) > (request.position, request.ordering_key)
            ]
            results += page[: request.limit]
        return self._answered(results)

    async def read_queues(self, requests: Sequence[QueueRequest], *, each: int) -> list[PendingDelivery]:
        results: list[Key] = []
        for request in requests:
            queue = [key for key in self._pending() if (key[0], key[2]) == (request.webhook, request.ordering_key)]
            results += [key for key in queue if request.after < key[1] <= request.through][:each]
        return self._answered(results)

    async def read_probes(self, webhooks: Sequence[UUID]) -> list[PendingDelivery]:
        results: list[Key] = []
        for webhook in webhooks:
            heads: dict[str, Key] = {}
            for key in self._pending():
                if key[0] == webhook:
                    heads.setdefault(key[2], key)
            now = self._world.now
            results += sorted(heads.values(), key=lambda key: (max(self._world.table[key].due, now), key[1]))[:1]
        return self._answered(results)

    def _pending(self) -> list[Key]:
        table = self._world.table
        if len(self._ordered) != len(table):  # rows are added, and never removed
            self._ordered = sorted(table, key=place)
        return [key for key in self._ordered if table[key].state == PENDING]

    def _answered(self, keys: Sequence[Key]) -> list[PendingDelivery]:
        """Return the rows as they are now. Changes during the query are not in the answer."""
        now, answer = self._world.now, []
        for key in keys:
            row = self._world.table[key]
            answer.append(PendingDelivery(*key, "{}" if row.due <= now else None, row.attempts, max(row.due - now, 0.0)))
        self._world.meanwhile()
        return answer


class World:
    """Random actions, and the invariants that hold whenever something is sent."""

    def __init__(self, random: Random, *, failing: float, delays: Sequence[float] = DELAYS, places: int = 8) -> None:
        self.random = random
        self.failing = failing
        self.delays = delays
        self.now = 1000.0
        self.table: dict[Key, Row] = {}
        self.position = 0
        self.to_insert: tuple[deque[tuple[Key, ...]], ...] = tuple(deque() for _ in WEBHOOKS)
        """The rows that the fan-out of each source has not inserted yet: each source has its own lag."""
        self.epoch = 0
        self.in_flight: list[ScheduledAttempt] = []
        self.unwritten: list[PendingOutcome] = []
        self.busy = False
        self.scheduler = DeliveryScheduler(lambda: None, places=places)
        self.scheduler.waiting_each = CAPACITY
        self.outcome_handler = OutcomeHandler(
            self.scheduler, self, schedule=RetrySchedule(delays), rng=random, time=lambda: self.now, metrics=WorkerMetrics()
        )
        self.reader = DeliveryReader(Twin(self), scheduler=self.scheduler, disable=self._never, time=lambda: self.now)
        self.take_shards()

    async def _never(self, webhook: UUID, reason: str) -> None:
        raise AssertionError(f"{webhook}: {reason}")

    # --- actions

    def append(self) -> None:
        """Append a write to the log, for some webhooks of one or both sources."""
        self.position += 1
        for source, webhooks in enumerate(WEBHOOKS):
            called = self.random.sample(webhooks, self.random.randint(0, len(webhooks)))
            keys = [
                (entry, self.position, key)
                for entry in called
                for key in self.random.sample(ORDERING_KEYS, self.random.randint(1, 2))
            ]
            self.to_insert[source].append(tuple(keys))

    def insert(self) -> None:
        """Let the fan-out of one source insert some writes, in the order of the log."""
        waiting = self.random.choice(self.to_insert)
        for _ in range(self.random.randint(0, len(waiting))):
            for key in waiting.popleft():
                self.table[key] = Row(due=self.now)
        self.reader.has_new = True

    def start(self) -> None:
        attempt = self.scheduler.next(self.now)
        if attempt is not None:
            self.check(attempt)
            self.in_flight.append(attempt)

    def land(self) -> None:
        if self.in_flight:
            attempt = self.in_flight.pop(self.random.randrange(len(self.in_flight)))
            failed = self.random.random() < self.failing
            pauses = failed and self.random.random() < 0.1
            result = AttemptResult(NOON, 0.1, 503 if failed else 200, "no" if failed else None, requested_wait=20.0 * pauses)
            self.outcome_handler.handle(attempt, result)
            self.scheduler.completed(attempt)
            outcome = self.unwritten[-1].outcome
            if not attempt.endpoint.revoked:
                self.table[outcome.key].done = outcome.state != PENDING

    def give_up(self) -> None:
        """Fail to read the webhook before an attempt."""
        if self.in_flight:
            attempt = self.in_flight.pop(self.random.randrange(len(self.in_flight)))
            self.scheduler.not_sent(attempt, self.random.choice((Unsendable(1.0), Unsendable(60.0), TimeCame())), now=self.now)
            self.scheduler.completed(attempt)

    def write(self) -> None:
        """Write some of the outcomes, in order, as the statement does."""
        count = self.random.randint(0, len(self.unwritten))
        batch, self.unwritten = self.unwritten[:count], self.unwritten[count:]
        for pending_outcome in batch:
            outcome, row = pending_outcome.outcome, self.table[pending_outcome.outcome.key]
            if outcome.epoch == self.epoch and row.state == PENDING:
                row.state, row.attempts = outcome.state, outcome.attempts
                row.due = self.now + outcome.wait if outcome.state == PENDING else row.due
        for pending_outcome in batch:
            self.scheduler.outcome_written(pending_outcome)

    def resend(self) -> None:
        finished = [key for key, row in self.table.items() if row.state != PENDING]
        if finished:
            key = self.random.choice(finished)
            self.table[key] = Row(due=self.now, excused=True)
            endpoint = self.scheduler.endpoint(key[0])
            if endpoint is not None:
                endpoint.read_again()
                self.scheduler.mark_ready(endpoint)

    def revoke(self) -> None:
        """Hand all shards to another member and back: unwritten outcomes are lost."""
        for key in [pending_outcome.outcome.key for pending_outcome in self.unwritten] + [
            attempt.row.key for attempt in self.in_flight
        ]:
            self.table[key].excused = True
        for row in self.table.values():
            row.done = row.state != PENDING
        self.take_shards()

    def take_shards(self) -> None:
        self.epoch += 1
        shards = dict.fromkeys(range(SHARDS), self.epoch)
        if self.scheduler.hold(shards, excess=(), until=float("inf")):
            self.reader.find_webhooks = True

    def wait(self) -> None:
        self.now += self.random.choice((0.1, 2.0, 7.0, 40.0))

    def read(self) -> None:
        """Do a round of the reader. The twin never waits, so a round ends at once. Other actions happen during its queries."""
        self.busy = True
        round_ = self.reader.read()
        try:
            round_.send(None)
        except StopIteration:
            return
        finally:
            self.busy = False
        raise AssertionError("it waits")

    def meanwhile(self) -> None:
        while self.busy and self.random.random() < 0.5:
            self.random.choice((self.append, self.insert, self.start, self.land, self.write, self.resend))()

    def step(self, *, rare: bool) -> None:
        often = (self.read, self.start, self.land)
        seldom = (self.give_up, self.append, self.append, self.insert, self.write, self.wait, self.resend, self.start)
        self.random.choice((*often, *often, *seldom, *([self.revoke] if rare else ())))()

    # --- rules

    def check(self, attempt: ScheduledAttempt) -> None:
        webhook, position, ordering_key = attempt.row.key
        row = self.table[attempt.row.key]
        assert not [
            entry
            for entry in self.in_flight
            if (entry.row.webhook, entry.row.ordering_key) == (webhook, ordering_key) and not entry.endpoint.revoked
        ]
        if not row.excused:
            assert not row.done, "nothing is sent twice without need"
            assert row.attempts <= attempt.row.attempts < len(self.delays)
            earlier = [key for key in self.table if (key[0], key[2]) == (webhook, ordering_key) and key[1] < position]
            assert all(self.table[key].done or self.table[key].excused for key in earlier), "nothing overtakes"

    def drain(self) -> None:
        """Deliver everything to working receivers."""
        self.failing = 0.0
        while any(self.to_insert):
            self.insert()
        for _ in range(400):
            self.read()
            for _ in range(20):
                self.start()
                self.land()
            self.write()
            self.now += 1.0
            self.reader.has_new = True
            if all(row.state != PENDING for row in self.table.values()) and self.quiet:
                break

    @property
    def quiet(self) -> bool:
        """Return True if no state of finished deliveries remains."""
        return all(endpoint.idle and not len(endpoint.queues) for endpoint in self.scheduler.endpoints.values())

    # --- OutcomeSink

    def add(self, pending_outcome: PendingOutcome) -> None:
        self.unwritten.append(pending_outcome)

    def set_health(self, endpoint: EndpointSender, health: EndpointFailures) -> None: ...


def finished(world: World) -> bool:
    """Return True if every row is delivered, or failed after its last attempt."""
    return all(row.state == DELIVERED or (row.state == FAILED and row.attempts == len(DELAYS)) for row in world.table.values())
