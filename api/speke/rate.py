"""The rate limit of the key provider, a token bucket for each client: docs/reference/api/key-provider.md#calls.

A packager with many endpoints requests all their keys when it starts, so a bucket holds the tokens of several seconds.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from math import ceil
from typing import Final
from zlib import crc32

from api.http.errors import TooManyRequests

PER_SECOND: Final = 50
_SECONDS_HELD: Final = 4
_BUCKETS: Final = 16_384
SIZE: Final = 16 * _BUCKETS
"""The bytes of memory for the buckets: two numbers of 64 bits for each."""


class TokenBuckets:
    """Token buckets for `per_second` requests on average and four times as many at once. Only clients with a valid key have a
    bucket. Two clients rarely have the same one.

    With `descriptor` the buckets are in memory that several processes share. Two processes that take a token at the same instant
    may both take the same one."""

    def __init__(
        self, per_second: int = PER_SECOND, *, descriptor: int = -1, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_second = per_second
        self._most = float(per_second * _SECONDS_HELD)
        self._monotonic = monotonic
        self._numbers = memoryview(mmap.mmap(descriptor, SIZE)).cast("d")
        """The tokens that are missing in each bucket, and the time of that count."""

    def take(self, client: str) -> int:
        """Take a token and return 0; without a token return the seconds until there is one."""
        now, place = self._monotonic(), 2 * (crc32(client.encode()) % _BUCKETS)
        missing, then = self._numbers[place : place + 2]
        missing = max(0.0, missing - (now - then) * self.per_second)
        over = missing + 1 - self._most
        if over <= 0:
            missing += 1
        self._numbers[place], self._numbers[place + 1] = missing, now
        return 0 if over <= 0 else max(1, ceil(over / self.per_second))


class RateLimit:
    """Refuses a request of a client without a token."""

    def __init__(self, buckets: TokenBuckets) -> None:
        self._buckets = buckets

    def take(self, client: str) -> None:
        if wait := self._buckets.take(client):
            raise TooManyRequests(f"more than {self._buckets.per_second} requests per second; try again later", retry_after=wait)
