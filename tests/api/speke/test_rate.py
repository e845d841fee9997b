"""The token bucket by itself, with a clock of its own."""

from __future__ import annotations

import os

import pytest

from api.http.errors import TooManyRequests
from api.speke.rate import SIZE, RateLimit, TokenBuckets


class Watch:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(limit: TokenBuckets, client: str, *, most: int = 1000) -> int:
    """Return the number of requests that pass before one is refused."""
    return next((count for count in range(most) if limit.take(client)), most)


def test_four_seconds_worth_at_once_and_then_the_rate() -> None:
    watch = Watch()
    limit = TokenBuckets(50, monotonic=watch)
    assert taken(limit, "a") == 200
    watch.now += 1
    assert taken(limit, "a") == 50
    watch.now += 3600
    assert taken(limit, "a") == 200


def test_clients_do_not_take_from_each_other() -> None:
    limit = TokenBuckets(1, monotonic=Watch())
    assert [taken(limit, "a"), taken(limit, "b"), taken(limit, "a")] == [4, 4, 0]


def test_processes_share_the_buckets_in_their_memory() -> None:
    memory = os.memfd_create("rates")
    os.truncate(memory, SIZE)
    first, other = (TokenBuckets(2, descriptor=memory, monotonic=Watch()) for _ in range(2))
    os.close(memory)
    assert [taken(first, "a", most=5), taken(other, "a"), taken(other, "b")] == [5, 3, 8]


@pytest.mark.parametrize("per_second", [1, 50, 10_000])
def test_a_refusal_says_when_to_come_again_and_then_it_works(per_second: int) -> None:
    watch = Watch()
    buckets = TokenBuckets(per_second, monotonic=watch)
    limit = RateLimit(buckets)
    assert taken(buckets, "a", most=4 * per_second + 1) == 4 * per_second
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.pairs == (("retry-after", "1"),)
    watch.now += 1
    limit.take("a")
