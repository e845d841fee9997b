"""Failed logins, counted for each address: after some of them the address has to wait."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Final

from cachetools import TTLCache

from api.http.errors import TooManyRequests

MOST: Final = 10
SECONDS: Final = 60
_ADDRESSES: Final = 10_000


class FailedLogins:
    """At most `MOST` in `SECONDS` after the last one, of each address; IPv6 addresses count by their network of 64 bits."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._counts: TTLCache[str, int] = TTLCache(_ADDRESSES, SECONDS, timer=monotonic)

    def admit(self, address: str) -> None:
        """Count a login as failed, until `forgive`: many at once are limited too. Raises `TooManyRequests`."""
        network = _network(address)
        failed = self._counts.get(network, 0)
        if failed >= MOST:
            raise TooManyRequests("Too many logins from this address have failed; wait a minute.", retry_after=SECONDS)
        self._counts[network] = failed + 1

    def forgive(self, address: str) -> None:
        """The login succeeded."""
        network = _network(address)
        if network in self._counts:
            self._counts[network] = max(0, self._counts[network] - 1)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))
