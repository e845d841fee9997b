"""A table of deliveries in memory that answers as the real statements do, and a world around a reader in which anything may happen
at any moment, also while a question is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from uuid import UUID

from projections.deliveries.keys import SHARDS, shard_of
from projections.deliveries.ledger import (
    DELIVERED,
    FAILED,
    PENDING,
    DeliveryLedger,
    Key,
    LaneAsked,
    PageAsked,
    PendingDelivery,
    Standing,
)
from workers.webhooks.attempt import Tried
from workers.webhooks.dispatch import Dispatch, Job, Settled
from workers.webhooks.endpoint import Endpoint
from workers.webhooks.reader import Reader
from workers.webhooks.retries import Schedule
from workers.webhooks.targets import Target, Targets
from workers.webhooks.verdicts import Verdicts

NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
WEBHOOKS = (UUID(int=1), UUID(int=2), UUID(int=4))
LANES = ("a", "b", "c")
DELAYS = (0.0, 5.0, 5.0, 60.0)
ROOM = 3


@dataclass
class Row:
    """`done` is the truth, whether or not it is written. `excused`: it was sent again by hand, or its outcome went with its shard,
    so that it may come twice and after later ones."""

    state: int = PENDING
    attempts: int = 0
    due: float = 0.0
    done: bool = False
    excused: bool = False


class Twin(DeliveryLedger):
    """The statements of the ledger, over rows in memory."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def last(self) -> tuple[int, UUID, str]:
        pending = self._pending()
        return (pending[-1][1], pending[-1][0], pending[-1][2]) if pending else (0, UUID(int=0), "")

    async def webhooks(self) -> list[UUID]:
        found = sorted({webhook for webhook, _, _ in self._pending()})
        self._world.meanwhile()
        return found

    async def fresh(self, after: tuple[int, UUID, str], *, shards: Iterable[int], limit: int) -> list[PendingDelivery]:
        held = set(shards)
        found = [key for key in self._pending() if (key[1], key[0], key[2]) > after and shard_of(key[0]) in held]
        return self._answered(found[:limit])

    async def pages(self, asked: Sequence[PageAsked]) -> list[PendingDelivery]:
        found: list[Key] = []
        for one in asked:
            page = [key for key in self._pending() if key[0] == one.webhook and (key[1], key[2]) > (one.position, one.lane)]
            found += page[: one.limit]
        return self._answered(found)

    async def lanes(self, asked: Sequence[LaneAsked], *, each: int) -> list[PendingDelivery]:
        found: list[Key] = []
        for one in asked:
            lane = [key for key in self._pending() if (key[0], key[2]) == (one.webhook, one.lane)]
            found += [key for key in lane if one.after < key[1] <= one.through][:each]
        return self._answered(found)

    async def standing(self, webhooks: Sequence[UUID]) -> Mapping[UUID, Standing]:
        return {webhook: Standing(1, None) for webhook in webhooks}

    def _pending(self) -> list[Key]:
        pending = (key for key, row in self._world.table.items() if row.state == PENDING)
        return sorted(pending, key=lambda key: (key[1], key[0], key[2]))

    def _answered(self, keys: Sequence[Key]) -> list[PendingDelivery]:
        """As the rows are now; what happens on the way back is not in the answer."""
        now, answer = self._world.now, []
        for key in keys:
            row = self._world.table[key]
            answer.append(PendingDelivery(*key, "{}" if row.due <= now else None, row.attempts, max(row.due - now, 0.0)))
        self._world.meanwhile()
        return answer


class AnyTarget(Targets):
    def __init__(self) -> None: ...

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, Target]:
        target = Target(1, "http://hooks.test", True, False, {}, [bytes(32)], None)
        return dict.fromkeys(webhooks, target)


class World:
    """What is done at random, and what must hold whenever something is sent."""

    def __init__(self, random: Random, *, failing: float) -> None:
        self.random = random
        self.failing = failing
        self.now = 1000.0
        self.table: dict[Key, Row] = {}
        self.position = 0
        self.epoch = 0
        self.flying: list[Job] = []
        self.unwritten: list[Settled] = []
        self.busy = False
        self.dispatch = Dispatch(lambda: None, places=8)
        self.dispatch.waiting_each = ROOM
        self.verdicts = Verdicts(self.dispatch, self, schedule=Schedule(DELAYS), rng=random, time=lambda: self.now)
        self.reader = Reader(Twin(self), AnyTarget(), dispatch=self.dispatch, disable=self._never, time=lambda: self.now)
        self.take_shards()

    async def _never(self, webhook: UUID, reason: str) -> None:
        raise AssertionError(f"{webhook}: {reason}")

    # --- what may happen

    def insert(self) -> None:
        self.position += 1
        for webhook in self.random.sample(WEBHOOKS, self.random.randint(1, len(WEBHOOKS))):
            for lane in self.random.sample(LANES, self.random.randint(1, 2)):
                self.table[webhook, self.position, lane] = Row(due=self.now)
        self.reader.fresh = True

    def start(self) -> None:
        job = self.dispatch.next(self.now)
        if job is not None:
            self.check(job)
            self.flying.append(job)

    def land(self) -> None:
        if self.flying:
            job = self.flying.pop(self.random.randrange(len(self.flying)))
            failed = self.random.random() < self.failing
            pauses = failed and self.random.random() < 0.1
            tried = Tried(NOON, 0.1, 503 if failed else 200, "no" if failed else None, asked=20.0 * pauses)
            self.verdicts.settle(job, tried)
            outcome = self.unwritten[-1].outcome
            if not job.endpoint.lost:
                self.table[outcome.key].done = outcome.state != PENDING

    def write(self) -> None:
        """Some of what there is, in order, as the statement does."""
        count = self.random.randint(0, len(self.unwritten))
        batch, self.unwritten = self.unwritten[:count], self.unwritten[count:]
        for settled in batch:
            outcome, row = settled.outcome, self.table[settled.outcome.key]
            if outcome.epoch == self.epoch and row.state == PENDING:
                row.state, row.attempts = outcome.state, outcome.attempts
                row.due = self.now + outcome.wait if outcome.state == PENDING else row.due
        for settled in batch:
            self.dispatch.wrote(settled)

    def resend(self) -> None:
        finished = [key for key, row in self.table.items() if row.state != PENDING]
        if finished:
            key = self.random.choice(finished)
            self.table[key] = Row(due=self.now, excused=True)
            endpoint = self.dispatch.endpoint(key[0])
            if endpoint is not None:
                endpoint.read_again()
                self.dispatch.awake(endpoint)

    def lose(self) -> None:
        """All shards go to somebody else and come back: what was not written is not known any more."""
        for key in [settled.outcome.key for settled in self.unwritten] + [job.row.key for job in self.flying]:
            self.table[key].excused = True
        for row in self.table.values():
            row.done = row.state != PENDING
        self.take_shards()

    def take_shards(self) -> None:
        self.epoch += 1
        shares = dict.fromkeys(range(SHARDS), self.epoch)
        if self.dispatch.hold(shares, surplus=(), until=float("inf")):
            self.reader.to_find = True

    def wait(self) -> None:
        self.now += self.random.choice((0.1, 2.0, 7.0, 40.0))

    def read(self) -> None:
        """The twin never really waits, so a round runs through at once; in its questions other things happen."""
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
            self.random.choice((self.insert, self.start, self.land, self.write, self.resend))()

    def step(self, *, rare: bool) -> None:
        often = (self.read, self.start, self.land)
        seldom = (self.insert, self.write, self.wait, self.resend, self.start)
        self.random.choice((*often, *often, *seldom, *([self.lose] if rare else ())))()

    # --- what must hold

    def check(self, job: Job) -> None:
        webhook, position, lane = job.row.key
        row = self.table[job.row.key]
        assert not [one for one in self.flying if (one.row.webhook, one.row.lane) == (webhook, lane) and not one.endpoint.lost]
        if not row.excused:
            assert not row.done, "nothing is sent twice without need"
            assert row.attempts <= job.row.attempts < len(DELAYS)
            earlier = [key for key in self.table if (key[0], key[2]) == (webhook, lane) and key[1] < position]
            assert all(self.table[key].done or self.table[key].excused for key in earlier), "nothing overtakes"

    def drain(self) -> None:
        """With receivers that are well again, all comes to an end."""
        self.failing = 0.0
        for _ in range(400):
            self.read()
            for _ in range(20):
                self.start()
                self.land()
            self.write()
            self.now += 1.0
            self.reader.fresh = True
            if all(row.state != PENDING for row in self.table.values()) and self.quiet:
                break

    @property
    def quiet(self) -> bool:
        """Nothing is remembered of what is done."""
        return all(one.idle and not len(one.lanes) for one in self.dispatch.endpoints.values())

    # --- Record

    def add(self, settled: Settled) -> None:
        self.unwritten.append(settled)

    def turn(self, endpoint: Endpoint, since: datetime | None) -> None: ...


def finished(world: World) -> bool:
    """Every row is delivered, or failed after its last try."""
    return all(row.state == DELIVERED or (row.state == FAILED and row.attempts == len(DELAYS)) for row in world.table.values())
