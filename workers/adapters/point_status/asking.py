"""The requests of one check of a publishing point. They are limited in time and size, and none is sent to a host that has not
answered before."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from time import monotonic
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from domain.kernel.urls import origin
from workers.ports import NO_HEADERS, Outbound, OutboundFailed, OutboundRefused, PointSilent

SECONDS: Final = 3.0
"""The time limit for one strategy in seconds, from resolving the host to the last byte."""
SECONDS_OF_ALL: Final = 5.0
"""Seconds after which no further request of the same check begins. It is not longer than the lease of a prober: a prober that was
frozen until after its lease sends nothing more."""
LARGEST_PAGE: Final = 256 * 1024
LARGEST_MANIFEST: Final = 1024 * 1024
_UNREACHABLE: Final = frozenset({"dns", "connect", "tls", "timeout", "closed"})


class Asking:
    """Remembers the hosts that could not be reached: several strategies use the same host, and each would wait in vain."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._ends = monotonic() + SECONDS_OF_ALL
        self._until = self._ends
        self._silent: dict[str, PointSilent] = {}

    def begin(self) -> None:
        """Begin one more strategy."""
        self._until = min(monotonic() + SECONDS, self._ends)

    async def get(self, url: str, *, most: int = LARGEST_PAGE, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the complete body of an answer with status 200. Raises `PointSilent`."""
        where = origin(url)
        if where in self._silent:
            raise self._silent[where]
        address, credentials = _without_user(url)
        seconds = self._until - monotonic()
        if seconds <= 0:
            raise PointSilent("timeout", "No time was left for a request.")
        try:
            reply = await self._outbound.request("GET", address, headers={**credentials, **headers}, seconds=seconds, most=most + 1)
        except OutboundRefused as refusal:
            raise PointSilent(refusal.kind, str(refusal)) from None
        except OutboundFailed as failure:
            silent = PointSilent(failure.kind, str(failure))
            if failure.kind in _UNREACHABLE:
                self._silent[where] = silent
            raise silent from None
        if 300 <= reply.status < 400:
            raise PointSilent("answer", f"It redirects (status {reply.status}), which is not followed.")
        if reply.status != 200:
            raise PointSilent("answer", f"It answered with status {reply.status}.")
        if len(reply.body) > most:
            raise PointSilent("answer", f"Its answer is larger than {most // 1024} KiB.")
        return reply.body


def _without_user(url: str) -> tuple[str, Mapping[str, str]]:
    """Return the address without its user info, and a header made of it."""
    try:
        split = urlsplit(url)
    except ValueError:
        return url, NO_HEADERS  # the client reports what is wrong with it
    user, separator, host = split.netloc.rpartition("@")
    if not separator:
        return url, NO_HEADERS
    name, _, password = user.partition(":")
    credentials = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
    return urlunsplit(split._replace(netloc=host)), {"Authorization": f"Basic {credentials}"}
