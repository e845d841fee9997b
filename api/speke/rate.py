"""The rate limit of the key provider, a token bucket for each client: docs/reference/api/key-provider.md#calls.

A packager with many endpoints requests all their keys when it starts, so a bucket holds the tokens of several seconds.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Final

from api.http.errors import TooManyRequests

PER_SECOND: Final = 50
_SECONDS_HELD: Final = 4


class TokenBuckets:
    """Token buckets for `per_second` requests on average and four times as many at once. Only clients with a valid key have a
    bucket."""

    def __init__(self, per_second: int = PER_SECOND, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = float(per_second * _SECONDS_HELD)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}
        """The remaining tokens of each client, and the time of that count."""

    def take(self, client: str) -> int:
        """Take a token and return 0; without a token return the seconds until there is one."""
        now = self._monotonic()
        tokens, then = self._buckets.get(client, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._per_second)
        if tokens < 1:
            self._buckets[client] = (tokens, now)
            return max(1, ceil((1 - tokens) / self._per_second))
        self._buckets[client] = (tokens - 1, now)
        return 0


class RateLimit:
    """Refuses a request of a client without a token. `take` is `TokenBuckets.take`, in this process or in the supervisor."""

    def __init__(self, take: Callable[[str], Awaitable[int]], *, per_second: int) -> None:
        self._take = take
        self._per_second = per_second

    async def take(self, client: str) -> None:
        if wait := await self._take(client):
            raise TooManyRequests(f"more than {self._per_second} requests per second; try again later", retry_after=wait)
