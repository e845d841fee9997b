"""The token bucket by itself, with a clock of its own."""

from __future__ import annotations

import pytest

from api.http.errors import TooManyRequests
from api.speke.rate import RateLimit


class Watch:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(limit: RateLimit, client: str, *, most: int = 1000) -> int:
    """How many requests go through before one is refused."""
    for count in range(most):
        try:
            limit.take(client)
        except TooManyRequests:
            return count
    return most


def test_four_seconds_worth_at_once_and_then_the_rate() -> None:
    watch = Watch()
    limit = RateLimit(50, monotonic=watch)
    assert taken(limit, "a") == 200
    watch.now += 1
    assert taken(limit, "a") == 50
    watch.now += 3600
    assert taken(limit, "a") == 200


def test_clients_do_not_take_from_each_other() -> None:
    limit = RateLimit(1, monotonic=Watch())
    assert [taken(limit, "a"), taken(limit, "b"), taken(limit, "a")] == [4, 4, 0]


@pytest.mark.parametrize(("per_second", "wait"), [(1, "1"), (50, "1"), (1_000_000, "1")])
def test_a_refusal_says_when_to_come_again_and_then_it_works(per_second: int, wait: str) -> None:
    watch = Watch()
    limit = RateLimit(per_second, monotonic=watch)
    for _ in range(4 * per_second):
        limit.take("a")
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.headers == (("retry-after", wait),)
    watch.now += int(wait)
    limit.take("a")
