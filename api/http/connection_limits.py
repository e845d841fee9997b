"""Limits of HTTP connections, and how many a server has open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from api.http.hosts import Hosts
from api.http.proxies import Proxies, share_of

_REFUSED: Final = 64
"""Connections above the limit that get an answer. Further ones are closed at once."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Times are in seconds, sizes in bytes."""

    url: int = 16 * 1024
    headers: int = 100
    head: int = 64 * 1024
    """All of the request's head; of a chunked body's trailer section as well."""
    head_seconds: float = 10
    """From the opening of the connection, or from the first byte of a later request, until the head is complete."""
    pause_seconds: float = 30
    """Without a byte of a body that the server waits for."""
    body_seconds: float = 300
    """For the whole body, unless the endpoint says that it may take any time."""
    idle_seconds: int = 75
    """Between two requests. Longer than the proxies and clients in front keep a connection that nobody uses: whoever closes first
    resets what the other side sends at that moment, and a POST is not repeated then."""
    crowded_idle_seconds: float = 5
    """The same while more than half of the connections are open."""
    taken: int = 32 * 1024
    """What a client takes at least of a response within `pause_seconds`."""
    unsent: int = 64 * 1024 * 1024
    """Of what was written for all clients and not taken."""
    connections: int = 10_000
    per_address: int = 2_000
    """Connections, and requests under way that trusted proxies have passed on for the address."""


class Connections(Collector):
    """The open connections of a server, and their limits. Also a source of metrics: `<prefix>_connections` and
    `<prefix>_connections_refused_total` by status."""

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        *,
        hosts: Hosts | None = None,
        proxies: Proxies | None = None,
        prefix: str = "http",
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self.hosts = hosts or Hosts()
        self.proxies = proxies or Proxies()
        self._prefix = prefix
        self._open = 0
        self._by_address: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def add(self, address: str) -> bool:
        """Whether there was room for one more. It is counted either way; that of a trusted proxy by its requests."""
        self._open += 1
        room = self.proxies.trusted(address) or self.enter(address)
        return room and self._open <= self.limits.connections

    @property
    def crowded(self) -> bool:
        """Whether even those that are refused are too many: each holds a file until its client has read the answer."""
        return self._open > self.limits.connections + _REFUSED

    @property
    def filling(self) -> bool:
        """Whether those that nobody uses should make room."""
        return self._open > self.limits.connections // 2

    def remove(self, address: str) -> None:
        self._open -= 1
        if not self.proxies.trusted(address):
            self.leave(address)

    def enter(self, address: str) -> bool:
        """Whether the address may have one more. It is counted either way, until `leave`."""
        share = share_of(address)
        self._by_address[share] += 1
        return self._by_address[share] <= self.limits.per_address

    def leave(self, address: str) -> None:
        share = share_of(address)
        self._by_address[share] -= 1
        if not self._by_address[share]:
            del self._by_address[share]

    def refused(self, reason: str) -> None:
        self._refused[reason] += 1

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        yield GaugeMetricFamily(f"{self._prefix}_connections", "Open connections of clients.", value=self._open)
        refused = CounterMetricFamily(
            f"{self._prefix}_connections_refused",
            "Connections closed because of a limit, by the status that was answered; unread: the client took no data; "
            "dropped: even refused ones were too many.",
            labels=["status"],
        )
        for reason, count in sorted(self._refused.items()):
            refused.add_metric([reason], count)
        yield refused
