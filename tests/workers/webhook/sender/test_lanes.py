"""The deliveries of an endpoint that are in memory."""

from __future__ import annotations

from uuid import UUID

from projections.webhook.store import Page, PendingDelivery
from workers.webhook.sender.lanes import MOST_KEYS, Lanes

WEBHOOK = UUID(int=1)


def row(position: int, key: str = "a", *, attempts: int = 0, wait: float = 0.0) -> PendingDelivery:
    return PendingDelivery(WEBHOOK, position, key, None if wait else "{}", attempts, wait)


def read(lanes: Lanes, *rows: PendingDelivery, more: bool = False, now: float = 0.0) -> Lanes:
    lanes.begin_page(1000)
    lanes.end_page(Page(rows, more), now)
    return lanes


def sent(lanes: Lanes) -> list[int]:
    """Take what is ready, and return the positions in the order in which they would be sent."""
    positions = []
    while (lane := lanes.take_ready()) is not None:
        if lane.has_unread:
            lanes.begin_read(lane)
            lanes.end_read(lane, Page((), more=False))
        while (taken := lanes.next_row(lane)) is not None:
            positions.append(taken.position)
        lanes.done(lane)
    return positions


def test_a_retry_that_a_page_shows_before_it_is_recorded_is_not_sent_twice() -> None:
    """The read of the page began before the record of the delivery, and ends after it."""
    lanes = read(Lanes(), row(1))
    lane = lanes.take_ready()
    assert lane is not None
    assert lanes.next_row(lane) == row(1)
    lanes.forget()
    lanes.begin_page(1000)
    lanes.begin_read(lane)
    lanes.end_read(lane, Page((), more=False))
    lanes.done(lane)
    lanes.end_page(Page([row(1)], more=False), 0.0)
    assert sent(lanes) == []
    assert len(lanes) == 0


def test_a_page_is_forgotten_if_everything_is_to_be_read_again_meanwhile() -> None:
    lanes = Lanes()
    lanes.begin_page(1000)
    lanes.forget()
    lanes.end_page(Page([row(7)], more=False), 0.0)
    assert (lanes.has_ready, lanes.has_unread, lanes.frontier) == (False, True, (0, ""))


def test_a_page_is_read_when_half_of_the_rows_are_sent() -> None:
    lanes = read(Lanes(), *[row(number, f"{number}") for number in range(1, 11)], more=True)
    assert not lanes.needs_page(10)
    for _ in range(5):
        lane = lanes.take_ready()
        assert lane is not None
        lanes.next_row(lane)
    assert lanes.needs_page(10)
    assert lanes.begin_page(10) == 5


def test_memory_for_ordering_keys_that_wait_is_bounded() -> None:
    lanes = read(Lanes(), *[row(number, f"{number:06}", attempts=1, wait=60.0) for number in range(1, MOST_KEYS + 1)], more=True)
    assert len(lanes) == MOST_KEYS
    assert not lanes.needs_page(1000)
    lane = lanes.take_due(60.0)
    assert lane is not None
    lanes.done(lane)
    assert sent(lanes) == []
    assert lanes.needs_page(1000)
