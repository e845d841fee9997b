"""An endpoint: its circuit breaker, its attempts in flight, and what it reads before each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest

from projections.webhook.store import PENDING, PendingDelivery, WebhookStatus
from tests.workers.webhook.sender.world import NOON, WEBHOOKS, Configs, Table, World
from workers.webhook.sender.attempt import AttemptResult
from workers.webhook.sender.endpoint import (
    CONCURRENCY,
    FAILURES,
    LONGEST_FAILURE,
    MOST_RETRIES,
    RESTING_SECONDS,
    CircuitBreaker,
    Phase,
)
from workers.webhook.sender.endpoint_configs import EndpointConfig
from workers.webhook.sender.places import Places, Risk

WEBHOOK = WEBHOOKS[0][0]
NOW = 1000.0


def failing(failures: int, **times: float) -> CircuitBreaker:
    return CircuitBreaker(failures, NOON if failures else None, **times)


RESTING = failing(FAILURES, rests_until=NOW + 20)
PROBING = failing(FAILURES, rests_until=NOW - 1)
PAUSED = failing(1, pauses_until=NOW + 20)


@pytest.mark.parametrize(
    ("given", "phase", "open_for"),
    [
        (failing(0), Phase.SENDING, None),
        (failing(FAILURES - 1), Phase.SENDING, None),
        (PAUSED, Phase.PAUSED, None),
        (RESTING, Phase.RESTING, 20),
        (PROBING, Phase.PROBING, 0),
        (failing(FAILURES, pauses_until=NOW + 20, rests_until=NOW + 10), Phase.PAUSED, 20),
    ],
)
def test_the_phase_of_a_circuit_breaker(given: CircuitBreaker, phase: Phase, open_for: float | None) -> None:
    assert (given.phase(NOW), given.open_for(NOW)) == (phase, open_for)


@pytest.mark.parametrize(
    ("given", "rests_until"),
    [
        (failing(FAILURES - 2), float("-inf")),
        (failing(FAILURES - 1), NOW + RESTING_SECONDS),
        (RESTING, NOW + 20),
        (PROBING, NOW + RESTING_SECONDS),
        (failing(FAILURES - 1, pauses_until=NOW + 60), NOW + RESTING_SECONDS),
    ],
)
def test_a_failure_of_the_tenth_attempt_or_of_a_probe_begins_a_rest(given: CircuitBreaker, rests_until: float) -> None:
    breaker = CircuitBreaker(given.failures, given.failing_since, given.rests_until, given.pauses_until)
    breaker.failed(NOW, NOON + timedelta(hours=1))
    assert breaker == CircuitBreaker(given.failures + 1, given.failing_since, rests_until, given.pauses_until)


def test_a_success_ends_a_rest_and_not_a_pause() -> None:
    breaker = failing(FAILURES, rests_until=NOW + 20, pauses_until=NOW + 5)
    breaker.delivered()
    assert breaker == CircuitBreaker(pauses_until=NOW + 5)


class Scripted(World):
    """A world in which nothing fails but what a test says."""

    def __init__(self, *, rows_each: int = 1000) -> None:
        super().__init__(Random(1), rows_each=rows_each, places=512)
        self.faults = 0.0
        self.sent: list[tuple[float, PendingDelivery]] = []
        self.answer: Callable[[PendingDelivery], Coroutine[Any, Any, AttemptResult]] = delivered

    async def receive(self, row: PendingDelivery) -> AttemptResult:
        self.sent.append((self.now, row))
        result = await self.answer(row)
        self.table[row.key].done = result.error is None
        return result

    def fill(self, count: int, *, attempts: int = 0, begin: int = 1) -> None:
        """Insert deliveries, each with its own ordering key."""
        for position in range(begin, begin + count):
            self.put((WEBHOOK, position, f"{position:04}"))
            self.table[WEBHOOK, position, f"{position:04}"].attempts = attempts

    def notice(self) -> None:
        self.endpoints.wake(WEBHOOK)


async def delivered(row: PendingDelivery) -> AttemptResult:
    return AttemptResult(NOON, 0.1, 200)


async def refused(row: PendingDelivery) -> AttemptResult:
    return AttemptResult(NOON, 0.1, 500, "no")


async def hangs(row: PendingDelivery) -> AttemptResult:
    await asyncio.sleep(3600.0)
    return AttemptResult(NOON, 0.1, None, "no answer")


def test_concurrency_of_an_endpoint_is_limited() -> None:
    async def act(world: World) -> None:
        await asyncio.sleep(10.0)
        assert len(scripted.sent) == CONCURRENCY

    scripted = Scripted()
    scripted.answer = hangs
    scripted.fill(100)
    scripted.run(act)


def test_retries_take_a_quarter_and_first_attempts_the_rest() -> None:
    async def act(world: World) -> None:
        await asyncio.sleep(10.0)
        retries = [row for _, row in scripted.sent if row.attempts]
        assert (len(retries), len(scripted.sent)) == (MOST_RETRIES, CONCURRENCY)

    scripted = Scripted()
    scripted.answer = hangs
    scripted.fill(50, attempts=2)
    scripted.fill(50, begin=51)
    scripted.run(act)


def test_ten_failures_are_followed_by_a_rest_and_single_probes() -> None:
    async def act(world: World) -> None:
        await asyncio.sleep(10.0)
        first = len(scripted.sent)
        assert FAILURES <= first <= FAILURES + CONCURRENCY
        await asyncio.sleep(RESTING_SECONDS + 15.0)
        assert len(scripted.sent) == first + 1, "one probe after the rest"
        scripted.answer = delivered
        await asyncio.sleep(RESTING_SECONDS + 15.0)
        assert all(row.done for row in world.table.values())

    scripted = Scripted()
    scripted.answer = refused
    scripted.fill(100)
    scripted.run(act)


def test_an_attempt_that_is_in_flight_delays_the_probe_and_may_end_the_rest() -> None:
    async def act(world: World) -> None:
        await asyncio.sleep(3 * RESTING_SECONDS)
        first = len(scripted.sent)
        assert first < 100, "it rests, and one attempt is still in flight"
        slow.set()
        await asyncio.sleep(5.0)
        assert all(row.done for row in world.table.values())

    async def answer(row: PendingDelivery) -> AttemptResult:
        if row.position > 1 and not slow.is_set():
            return await refused(row)
        await slow.wait()
        return await delivered(row)

    slow = asyncio.Event()
    scripted = Scripted()
    scripted.answer = answer
    scripted.fill(100)
    scripted.run(act)


def test_a_pause_that_the_receiver_asks_for() -> None:
    async def answer(row: PendingDelivery) -> AttemptResult:
        if len(scripted.sent) == 1:
            return AttemptResult(NOON, 0.1, 429, "busy", requested_wait=100.0)
        return await delivered(row)

    async def act(world: World) -> None:
        await asyncio.sleep(99.0)
        assert len(scripted.sent) == 1
        scripted.put((WEBHOOK, 2, "b"))
        await asyncio.sleep(10.0)
        assert [round(time - scripted.sent[0][0]) >= 100 for time, _ in scripted.sent] == [False, True, True]

    scripted = Scripted()
    scripted.answer = answer
    scripted.put((WEBHOOK, 1, "a"))
    scripted.run(act)


class Failing(Table):
    """A table that says that the endpoint has failed for days: the success of another attempt is not recorded yet."""

    version = 1

    async def webhook_status(self, webhook: UUID) -> WebhookStatus:
        return WebhookStatus(self.version, enabled=True, failing_since=NOON - LONGEST_FAILURE)


class Slow(Configs):
    """Configurations whose loading takes a second."""

    def __init__(self, table: Failing) -> None:
        self.table = table

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointConfig]:
        version = self.table.version
        await asyncio.sleep(1.0)
        config = EndpointConfig(version, "", as_json=True, disabled=False, headers={}, keys=(), previous_until=None)
        return dict.fromkeys(webhooks, config)


def test_a_success_while_a_new_version_is_read_counts() -> None:
    """Otherwise the next failure would disable the webhook."""

    async def answer(row: PendingDelivery) -> AttemptResult:
        if row.position == 1:
            table.version = 2
            scripted.put((WEBHOOK, 2, "b"))
            scripted.notice()
            await asyncio.sleep(0.5)
            return await delivered(row)
        return await refused(row)

    async def act(world: World) -> None:
        await asyncio.sleep(4.0)
        assert [row.position for _, row in scripted.sent] == [1, 2]
        assert scripted.table[WEBHOOK, 2, "b"].state == PENDING
        [endpoint] = scripted.tasks
        assert endpoint.phase is Phase.SENDING

    scripted = Scripted()
    table = Failing(scripted)
    scripted.parts.store, scripted.parts.configs = table, Slow(table)
    scripted.answer = answer
    scripted.put((WEBHOOK, 1, "a"))
    scripted.run(act)


@pytest.mark.parametrize(("risk", "most"), [(Risk.PROVEN, 8), (Risk.NEW, 6), (Risk.FAILING, 2)])
async def test_attempts_that_may_hang_leave_places_for_the_others(risk: Risk, most: int) -> None:
    places = Places(8)
    waiting = [asyncio.create_task(places.take(risk)) for _ in range(20)]
    await asyncio.sleep(0)
    assert places.taken == most
    places.give_back(risk)
    await asyncio.sleep(0)
    assert places.taken == most
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for _ in range(most):
        places.give_back(risk)
    for _ in range(8):
        await places.take(Risk.PROVEN)
    assert places.taken == 8, "a wait that was given up has kept no place"
