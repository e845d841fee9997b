"""Limits on logins: on wrong keys from each address, and on logins with each key."""

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
"""Logins with one key in a minute, in each process. Sessions in use are newer than the logins of the minute before, so logins at
this rate do not end them."""
_KEYS: Final = 10_000


class FailedLogins:
    """A limit of `MOST` wrong keys from each address; the count expires `SECONDS` after the last one. IPv6 addresses are counted by
    their network of 64 bits. A correct key is always accepted, so an address that others share does not lock anyone out."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._counts: TTLCache[str, int] = TTLCache(_ADDRESSES, SECONDS, timer=monotonic)

    def failed(self, address: str) -> None:
        """Count a wrong key. Raise `TooManyRequests` if there were too many."""
        network = _network(address)
        failed = self._counts.get(network, 0)
        if failed >= MOST:
            raise TooManyRequests("Too many logins from this address have failed; wait a minute.", retry_after=SECONDS)
        self._counts[network] = failed + 1


class LoginsOfKeys:
    """A limit of `MOST_OF_KEY` logins per minute with one key. Each login is a session and may end another session of the key."""

    def __init__(self, *, clock: Clock) -> None:
        self._counts: TTLCache[str, list[int]] = TTLCache(_KEYS, SECONDS, timer=lambda: clock().timestamp())

    def begun(self, key_id: str) -> bool:
        """Count a login and return True if it is the first with this key in this minute. Raise `TooManyRequests` if there were too
        many."""
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
