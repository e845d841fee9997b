"""An endpoint: attempts in flight, rows in memory, times."""

from __future__ import annotations

from uuid import UUID

from projections.webhook.keys import SHARDS, shard_of
from projections.webhook.store import PendingDelivery
from tests.support.clock import NOON
from workers.webhook.sender.endpoint import CONCURRENCY, MOST_RETRIES, EndpointSender
from workers.webhook.sender.endpoint_state import (
    FAILURES,
    LONG,
    RESTING_SECONDS,
    AttemptDelivered,
    AttemptFailed,
    TimeCame,
    Unsendable,
)
from workers.webhook.sender.scheduler import DeliveryScheduler, ScheduledAttempt
from workers.webhook.sender.timer import SPARE, Timer

FIRST, SECOND = UUID(int=1), UUID(int=2)


def endpoint(timer: Timer | None = None, *, marked: list[EndpointSender] | None = None) -> EndpointSender:
    mark_ready = (marked if marked is not None else []).append
    return EndpointSender(FIRST, shard=0, epoch=1, timer=timer or Timer(lambda: None), mark_ready=mark_ready, limit=1000)


def rows(webhook: UUID, count: int, *, attempts: int = 0, begin: int = 1) -> list[PendingDelivery]:
    """Return rows, each with its own ordering key."""
    return [PendingDelivery(webhook, number, f"{number:04}", "{}", attempts, 0.0) for number in range(begin, begin + count)]


def offered(endpoint: EndpointSender, *more: PendingDelivery) -> EndpointSender:
    for row in more:
        endpoint.queues.offer(row, 0.0)
    return endpoint


def taken(endpoint: EndpointSender, *, retries_allowed: bool = True) -> list[PendingDelivery]:
    results = []
    while (row := endpoint.next(0.0, retries_allowed=retries_allowed)) is not None:
        results.append(row)
    return results


def test_concurrency_of_an_endpoint_is_limited() -> None:
    assert len(taken(offered(endpoint(), *rows(FIRST, 100)))) == CONCURRENCY


def test_retries_take_a_quarter_and_first_attempts_the_rest() -> None:
    target = offered(endpoint(), *rows(FIRST, 50, attempts=3), *rows(FIRST, 50, begin=51))
    result = taken(target)
    assert [row.attempts > 0 for row in result].count(True) == MOST_RETRIES
    assert len(result) == CONCURRENCY


def test_retries_alone_leave_the_other_places_free() -> None:
    assert len(taken(offered(endpoint(), *rows(FIRST, 50, attempts=3)))) == MOST_RETRIES


def test_first_attempts_leave_retries_their_quarter() -> None:
    target = offered(endpoint(), *rows(FIRST, 50))
    result = taken(target)
    offered(target, *rows(FIRST, 1, attempts=1, begin=51))
    target.succeeded(result[0], 0.0)
    target.completed(result[0])
    retry = target.next(0.0, retries_allowed=True)
    assert retry is not None
    assert retry.position == 51


def test_a_resting_endpoint_has_no_rows_in_memory_and_no_attempt_is_counted() -> None:
    timer, marked = Timer(lambda: None), list[EndpointSender]()
    target = offered(endpoint(timer, marked=marked), *rows(FIRST, 100))
    for row in taken(target)[:FAILURES]:
        target.failed(row, AttemptFailed(NOON), now=1.0, wait=5.0)
        target.completed(row)
    assert (target.queues.waiting, target.has_unread, target.capacity()) == (0, True, 0)
    timer.run(1.0 + RESTING_SECONDS)
    assert marked[-1] is target


def test_after_a_rest_one_attempt_is_made_when_all_others_have_ended() -> None:
    timer = Timer(lambda: None)
    target = offered(endpoint(timer), *rows(FIRST, 100))
    in_progress = taken(target)
    for row in in_progress[:FAILURES]:
        target.failed(row, AttemptFailed(NOON), now=1.0, wait=5.0)
        target.completed(row)
    timer.run(1.0 + RESTING_SECONDS)
    assert not target.needs_probe(31.0), "others are in flight"
    for row in in_progress[FAILURES:]:
        target.not_sent(row, TimeCame(), now=31.0)
        target.completed(row)
    assert target.needs_probe(31.0)
    target.queues.probe(rows(FIRST, 1)[0])
    assert len(taken(target)) == 1


def test_a_pause_that_the_receiver_asks_for() -> None:
    timer = Timer(lambda: None)
    target = offered(endpoint(timer), *rows(FIRST, 10))
    row = target.next(0.0, retries_allowed=True)
    assert row is not None
    target.failed(row, AttemptFailed(NOON, pause=100.0), now=1.0, wait=100.0)
    target.completed(row)
    offered(target, *rows(FIRST, 10))
    timer.run(100.0)
    assert target.next(100.0, retries_allowed=True) is None
    timer.run(101.0)
    assert target.next(101.0, retries_allowed=True) is not None


def test_a_short_pause_keeps_what_is_in_memory() -> None:
    target = offered(endpoint(), *rows(FIRST, 10))
    target.apply(Unsendable(LONG), 1.0)
    assert target.queues.waiting == 10


def test_the_timer_has_one_time_for_each_endpoint() -> None:
    timer, queues = Timer(lambda: None), 500
    target = offered(endpoint(timer), *rows(FIRST, queues))
    for now in range(40):
        for row in taken(target):
            target.failed(row, AttemptFailed(NOON), now=float(now), wait=3600.0)
            target.completed(row)
        target.apply(AttemptDelivered(), float(now))
        offered(target, *rows(FIRST, queues))
    assert timer.entries <= 2 + SPARE
    assert target.queues.timed_entries <= 2 * queues


def scheduler(places: int) -> DeliveryScheduler:
    made = DeliveryScheduler(lambda: None, places=places)
    made.hold(dict.fromkeys(range(SHARDS), 1), excess=(), until=1000.0)
    return made


def holding(made: DeliveryScheduler, webhook: UUID, *given: PendingDelivery) -> EndpointSender:
    endpoint = made.endpoint(webhook)
    assert endpoint is not None
    return offered(endpoint, *given)


def attempts_now(made: DeliveryScheduler) -> list[ScheduledAttempt]:
    results = []
    while (attempt := made.next(0.0)) is not None:
        results.append(attempt)
    return results


def test_endpoints_take_turns() -> None:
    made = scheduler(places=10)
    holding(made, FIRST, *rows(FIRST, 50))
    holding(made, SECOND, *rows(SECOND, 50))
    assert [attempt.row.webhook for attempt in attempts_now(made)] == [FIRST, SECOND] * 5


def test_one_whose_last_attempt_was_answered_well_does_not_wait_for_many_others() -> None:
    made = scheduler(places=100)
    well = holding(made, FIRST, *rows(FIRST, 3))
    [attempt, *_] = attempts_now(made)
    well.succeeded(attempt.row, 0.0)
    strangers = [UUID(int=number) for number in range(100, 110)]
    for stranger in strangers:
        holding(made, stranger, *rows(stranger, 2))
    offered(well, *rows(FIRST, 6)[3:])
    made.mark_ready(well)
    asked = [attempt.row.webhook for attempt in attempts_now(made)]
    assert [at for at, webhook in enumerate(asked) if webhook == FIRST] == [0, 2, 4], "every second turn, as long as it has any"
    assert asked[1::2][:2] == strangers[:2]
    assert all(asked.count(stranger) == 2 for stranger in strangers)
    well.failed(attempt.row, AttemptFailed(NOON), now=0.0, wait=None)
    assert not well.proven


def test_retries_take_at_most_a_quarter_of_all_places() -> None:
    made = scheduler(places=8)
    holding(made, FIRST, *rows(FIRST, 50, attempts=1))
    first = attempts_now(made)
    assert len(first) == 2
    holding(made, SECOND, *rows(SECOND, 50))
    made.mark_ready(made.endpoints[SECOND])
    others = attempts_now(made)
    assert len(others) == 6
    for attempt in (first[0], others[0]):
        attempt.endpoint.succeeded(attempt.row, 0.0)
        made.completed(attempt)
    assert {attempt.row.webhook for attempt in attempts_now(made)} == {FIRST, SECOND}, "one that was held back has its turn again"


def test_nothing_is_sent_after_the_lease_has_run_out() -> None:
    made = scheduler(places=8)
    holding(made, FIRST, *rows(FIRST, 50))
    assert made.next(1000.0) is None
    assert made.next(999.9) is not None


def test_a_revoked_shard_removes_its_endpoints() -> None:
    made = scheduler(places=8)
    target = holding(made, FIRST, *rows(FIRST, 50))
    made.hold({shard: 1 for shard in range(SHARDS) if shard != shard_of(FIRST)}, excess=(), until=2000.0)
    assert target.revoked
    assert made.next(0.0) is None
    assert made.endpoint(FIRST) is None


def test_a_shard_is_released_when_nothing_is_in_flight() -> None:
    made = scheduler(places=8)
    holding(made, FIRST, *rows(FIRST, 1))
    [attempt] = attempts_now(made)
    made.hold(dict.fromkeys(range(SHARDS), 1), excess=[shard_of(FIRST)], until=2000.0)
    assert made.free() == []
    attempt.endpoint.succeeded(attempt.row, 0.0)
    made.completed(attempt)
    assert made.free() == [shard_of(FIRST)]
