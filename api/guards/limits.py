"""Limits of HTTP connections, and how many a server has open."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from api.guards.hosts import Hosts
from api.guards.proxies import Proxies, share_of

_TICK: Final = 0.1
_TURNS: Final = 10
_REFUSED: Final = 64
"""Connections above the limit that get an answer. Further ones are closed at once."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Times are in seconds, sizes in bytes."""

    url: int = 16 * 1024
    headers: int = 100
    head: int = 64 * 1024
    """The size of a request's head, and that of the trailer section of a chunked body."""
    head_seconds: float = 10
    """The time until the head is complete. It begins when the connection is opened, or with the first byte of a later request."""
    pause_seconds: float = 30
    """The time without a byte of a body that the server waits for."""
    body_seconds: float = 300
    """The time of the whole body, unless the endpoint says that it may take any time."""
    idle_seconds: int = 75
    """The time between two requests. It is longer than the proxies and clients in front keep a connection that nobody uses:
    whoever closes first resets what the other side sends at that moment, and a POST is not repeated then."""
    crowded_idle_seconds: float = 5
    """The time between two requests while more than half of the connections are open."""
    taken: int = 32 * 1024
    """The bytes of a response that a client must take within `pause_seconds`."""
    unsent: int = 64 * 1024 * 1024
    """The bytes that may be written for all clients and not taken yet."""
    connections: int = 10_000
    per_address: int = 2_000
    """Connections, and requests under way that trusted proxies have passed on for the address."""


class Connection(Protocol):
    """A connection that is looked at about once a second."""

    def check(self, now: float) -> None:
        """Close the connection if its client is too slow."""
        ...

    def answer_last(self) -> None:
        """Close the connection after the response that is under way, or after the next one if that has begun."""
        ...

    def give_up(self) -> None:
        """Drop what was written and not taken, and close the connection."""
        ...

    @property
    def unsent(self) -> int:
        """The number of bytes that were written and not taken."""
        ...

    def taken_at(self, now: float) -> float:
        """Return when the client last took enough of what was written for it."""
        ...


class Connections(Collector):
    """The open connections of a server, and their limits. Also a source of metrics: `<prefix>_connections` and
    `<prefix>_connections_refused_total` by status.

    While connections are open, a timer looks at a tenth of them every tenth of a second."""

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
        self.parts: list[set[Any]] = [set() for _ in range(_TURNS)]
        """The connections, by the turn in which they are looked at. Connections that were opened at the same time are not closed at
        the same time, because most clients would come back then."""
        self.is_ending = False
        """True if each connection is closed after its next response."""
        self._turns = itertools.cycle(range(_TURNS))
        self._timer: asyncio.TimerHandle | None = None
        self._prefix = prefix
        self._part_of: dict[Any, set[Any]] = {}
        self._by_address: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._part_of)

    @property
    def is_crowded(self) -> bool:
        """True if even the refused connections are too many: each holds a file until its client has read the response."""
        return self.open > self.limits.connections + _REFUSED

    @property
    def is_filling(self) -> bool:
        """True if connections that nobody uses should make room."""
        return self.open > self.limits.connections // 2

    def add(self, connection: Connection, address: str) -> bool:
        """Add a connection, and return whether there was room for it. Connections of a trusted proxy count by their requests."""
        part = self._part_of[connection] = self.parts[next(self._turns)]
        part.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick, 0)
        room = self.proxies.trusted(address) or self.enter(address)
        return room and self.open <= self.limits.connections

    def remove(self, connection: Connection, address: str) -> None:
        self._part_of.pop(connection).discard(connection)
        if not self.proxies.trusted(address):
            self.leave(address)

    def answer_last(self) -> None:
        """Close each connection after its next response, which says so: then its client sends nothing more on it."""
        self.is_ending = True
        for connection in tuple(self._part_of):
            connection.answer_last()

    def _tick(self, turn: int) -> None:
        self._timer = None
        if self._part_of:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_TICK, self._tick, (turn + 1) % _TURNS)
            self.look(turn, loop.time())

    def look(self, turn: int, now: float) -> None:
        """Check the connections of a turn; in the first turn also what all connections together have not sent."""
        for connection in tuple(self.parts[turn]):
            connection.check(now)
        if turn == 0:
            self.drop_unsent(now)

    def drop_unsent(self, now: float) -> None:
        """If more is unsent than all connections may hold, close the connections whose clients have taken nothing for the longest
        time."""
        total = sum(connection.unsent for connection in self._part_of)
        if total <= self.limits.unsent:
            return
        stalled = [connection for connection in self._part_of if connection.taken_at(now) < now]
        for connection in sorted(stalled, key=lambda each: each.taken_at(now)):
            if total <= self.limits.unsent:
                return
            total -= connection.unsent
            connection.give_up()

    def enter(self, address: str) -> bool:
        """Count one more for the address until `leave`, and return whether the address may have it."""
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
        yield GaugeMetricFamily(f"{self._prefix}_connections", "Open connections of clients.", value=self.open)
        refused = CounterMetricFamily(
            f"{self._prefix}_connections_refused",
            "Connections closed because of a limit, by the status that was answered; unread: the client took no data; "
            "dropped: even refused ones were too many.",
            labels=["status"],
        )
        for reason, count in sorted(self._refused.items()):
            refused.add_metric([reason], count)
        yield refused
