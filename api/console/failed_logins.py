"""Logins that are counted: wrong keys for each address, and logins of each key. After some of them who asks has to wait."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Final

from cachetools import TTLCache

from api.http.errors import TooManyRequests
from domain.kernel.clock import Clock

MOST: Final = 10
SECONDS: Final = 60
_ADDRESSES: Final = 10_000
MOST_OF_KEY: Final = 20
"""In each process. A session in use is newer than those of a minute before, so logins at this rate do not end it."""
_KEYS: Final = 10_000


class FailedLogins:
    """At most `MOST` in `SECONDS` after the last one, of each address; IPv6 addresses count by their network of 64 bits. Only wrong
    keys count: the right one is not kept out by whoever shares its address."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._counts: TTLCache[str, int] = TTLCache(_ADDRESSES, SECONDS, timer=monotonic)

    def failed(self, address: str) -> None:
        """Count a wrong key. Raises `TooManyRequests`."""
        network = _network(address)
        failed = self._counts.get(network, 0)
        if failed >= MOST:
            raise TooManyRequests("Too many logins from this address have failed; wait a minute.", retry_after=SECONDS)
        self._counts[network] = failed + 1


class LoginsOfKeys:
    """At most `MOST_OF_KEY` in a minute with one key: each is a session and may end another of the key."""

    def __init__(self, *, clock: Clock) -> None:
        self._counts: TTLCache[str, list[int]] = TTLCache(_KEYS, SECONDS, timer=lambda: clock().timestamp())

    def begun(self, key_id: str) -> bool:
        """Count a login; whether it is the first one of the key in this minute. Raises `TooManyRequests`."""
        count = self._counts.setdefault(key_id, [0])
        if count[0] >= MOST_OF_KEY:
            raise TooManyRequests("Too many logins with this key; wait a minute.", retry_after=SECONDS)
        count[0] += 1
        return count[0] == 1


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))
