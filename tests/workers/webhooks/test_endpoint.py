"""How much may be under way for an endpoint, and when it is left alone. Issue 5, "Delivery"."""

from __future__ import annotations

from uuid import UUID

from projections.deliveries.keys import SHARDS, shard_of
from projections.deliveries.ledger import PendingDelivery
from workers.webhooks.breaker import FAILURES, OPEN_SECONDS, Breaker
from workers.webhooks.dispatch import Dispatch, Job
from workers.webhooks.endpoint import CONCURRENCY, LATE, LONG, Endpoint
from workers.webhooks.lanes import Agenda

FIRST, SECOND = UUID(int=1), UUID(int=2)


def endpoint(agenda: Agenda | None = None, *, awoken: list[Endpoint] | None = None) -> Endpoint:
    awake = (awoken if awoken is not None else []).append
    return Endpoint(FIRST, shard=0, epoch=1, agenda=agenda or Agenda(lambda: None), awake=awake, limit=1000)


def rows(webhook: UUID, count: int, *, attempts: int = 0, begin: int = 1) -> list[PendingDelivery]:
    """Each in a lane of its own."""
    return [PendingDelivery(webhook, number, f"{number:04}", "{}", attempts, 0.0) for number in range(begin, begin + count)]


def offered(one: Endpoint, *more: PendingDelivery) -> Endpoint:
    for row in more:
        one.lanes.offer(row, 0.0)
    return one


def taken(one: Endpoint, *, late_too: bool = True) -> list[PendingDelivery]:
    found = []
    while (row := one.next(0.0, late_too=late_too)) is not None:
        found.append(row)
    return found


def test_no_more_than_its_share_is_under_way() -> None:
    assert len(taken(offered(endpoint(), *rows(FIRST, 100)))) == CONCURRENCY


def test_later_tries_take_a_quarter_and_first_tries_the_rest() -> None:
    one = offered(endpoint(), *rows(FIRST, 50, attempts=3), *rows(FIRST, 50, begin=51))
    found = taken(one)
    assert [row.attempts > 0 for row in found].count(True) == LATE
    assert len(found) == CONCURRENCY


def test_later_tries_alone_leave_the_other_places_free() -> None:
    assert len(taken(offered(endpoint(), *rows(FIRST, 50, attempts=3)))) == LATE


def test_first_tries_never_keep_later_ones_from_their_quarter() -> None:
    one = offered(endpoint(), *rows(FIRST, 50))
    found = taken(one)
    offered(one, *rows(FIRST, 1, attempts=1, begin=51))
    one.succeeded(found[0])
    late = one.next(0.0, late_too=True)
    assert late is not None
    assert late.position == 51


def test_the_breaker_opens_after_failures_in_a_row_and_lets_one_probe_through() -> None:
    breaker = Breaker()
    assert [breaker.failed(1.0) for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    assert not breaker.failed(2.0), "what was under way changes nothing"
    assert not breaker.allows(30.9, flying=0)
    assert breaker.allows(1.0 + OPEN_SECONDS, flying=0)
    assert not breaker.allows(1.0 + OPEN_SECONDS, flying=1)
    assert breaker.failed(32.0)
    assert not breaker.allows(61.9, flying=0)
    breaker.succeeded()
    assert breaker.allows(33.0, flying=5)


def test_a_success_between_failures_keeps_it_closed() -> None:
    breaker = Breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            assert not breaker.failed(1.0)
        breaker.succeeded()
    assert breaker.allows(1.0, flying=0)


def test_when_it_opens_what_is_in_memory_is_let_go_and_no_try_is_used_up() -> None:
    agenda, awoken = Agenda(lambda: None), list[Endpoint]()
    one = offered(endpoint(agenda, awoken=awoken), *rows(FIRST, 100))
    for row in taken(one)[:FAILURES]:
        one.failed(row, 1.0, wait=5.0)
    assert (one.lanes.waiting, one.behind, one.room(2.0)) == (0, True, 0)
    agenda.run(1.0 + OPEN_SECONDS)
    assert awoken[-1] is one


def test_an_endpoint_that_asks_for_patience_is_left_alone() -> None:
    one = offered(endpoint(), *rows(FIRST, 10))
    row = one.next(0.0, late_too=True)
    assert row is not None
    one.failed(row, 1.0, wait=100.0)
    one.pause(1.0, seconds=100.0)
    offered(one, *rows(FIRST, 10))
    assert one.next(100.0, late_too=True) is None
    assert one.next(101.0, late_too=True) is not None


def test_a_short_pause_keeps_what_is_in_memory() -> None:
    one = offered(endpoint(), *rows(FIRST, 10))
    one.pause(1.0, seconds=LONG)
    assert one.lanes.waiting == 10


def dispatch(places: int) -> Dispatch:
    made = Dispatch(lambda: None, places=places)
    made.hold(dict.fromkeys(range(SHARDS), 1), surplus=(), until=1000.0)
    return made


def holding(made: Dispatch, webhook: UUID, *given: PendingDelivery) -> Endpoint:
    one = made.endpoint(webhook)
    assert one is not None
    return offered(one, *given)


def jobs(made: Dispatch) -> list[Job]:
    found = []
    while (job := made.next(0.0)) is not None:
        found.append(job)
    return found


def test_endpoints_take_turns() -> None:
    made = dispatch(places=10)
    holding(made, FIRST, *rows(FIRST, 50))
    holding(made, SECOND, *rows(SECOND, 50))
    assert [job.row.webhook for job in jobs(made)] == [FIRST, SECOND] * 5


def test_what_may_hang_takes_no_more_than_a_quarter_of_all_places() -> None:
    made = dispatch(places=8)
    holding(made, FIRST, *rows(FIRST, 50, attempts=1))
    first = jobs(made)
    assert len(first) == 2
    holding(made, SECOND, *rows(SECOND, 50))
    made.awake(made.endpoints[SECOND])
    others = jobs(made)
    assert len(others) == 6
    for job in (first[0], others[0]):
        job.endpoint.succeeded(job.row)
        made.landed(job)
    assert {job.row.webhook for job in jobs(made)} == {FIRST, SECOND}, "one that was held back has its turn again"


def test_nothing_is_sent_once_the_shares_may_be_somebody_elses() -> None:
    made = dispatch(places=8)
    holding(made, FIRST, *rows(FIRST, 50))
    assert made.next(1000.0) is None
    assert made.next(999.9) is not None


def test_a_lost_shard_takes_its_endpoints_along() -> None:
    made = dispatch(places=8)
    one = holding(made, FIRST, *rows(FIRST, 50))
    made.hold({shard: 1 for shard in range(SHARDS) if shard != shard_of(FIRST)}, surplus=(), until=2000.0)
    assert one.lost
    assert made.next(0.0) is None
    assert made.endpoint(FIRST) is None


def test_a_shard_that_is_to_go_is_free_once_nothing_is_under_way() -> None:
    made = dispatch(places=8)
    holding(made, FIRST, *rows(FIRST, 1))
    [job] = jobs(made)
    made.hold(dict.fromkeys(range(SHARDS), 1), surplus=[shard_of(FIRST)], until=2000.0)
    assert made.free() == []
    job.endpoint.succeeded(job.row)
    made.landed(job)
    assert made.free() == [shard_of(FIRST)]
