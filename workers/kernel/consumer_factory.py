"""The parts by which workers follow the log and share work: feeds, consumers, signals and leases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol
from uuid import UUID

from domain.kernel.ids import new_id
from projections.consumers.leases import LEASE, ShardLeases
from projections.consumers.orders import Orders
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.log_watcher import LogWatcher
from workers.kernel.consumer import Consumer, Handler
from workers.kernel.fallback_feed import BrokerFeed, FallbackFeed
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.order_worker import CarryOut, OrderWorker
from workers.kernel.settings import AggregateKinds, Identity
from workers.kernel.wakeups import FeedSignal, LogSignal, Signal, Waker
from workers.kernel.worker import Worker


class Broker(Protocol):
    """A message broker that holds the events of the log."""

    def feed(self, kinds: frozenset[str], *, past: LogFeed, consumer: str | None) -> BrokerFeed:
        """Return a feed of the events of these kinds. `past` reads what the broker no longer holds. Its own programs show the
        consumer as a group of its name."""
        ...


class OrderWriter(Handler[Any], Protocol):
    """A handler whose effects are orders. `CONSUMER` is the name of the consumer and of its orders."""

    CONSUMER: ClassVar[str]


class ConsumerFactory:
    """Makes feeds, consumers, signals and leases for the workers of this process. Feeds read the `broker` if there is one."""

    def __init__(
        self,
        database: Database,
        log_watcher: LogWatcher,
        *,
        kinds: AggregateKinds,
        identity: Identity,
        broker: Broker | None = None,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self._database = database
        self._log_watcher = log_watcher
        self._kinds = kinds
        self._machine = identity.machine
        self._broker = broker
        self._tracer = tracer

    def feed(self, kinds: frozenset[str], *, consumer: str | None = None, on_air: bool = False) -> Feed:
        """Return a feed of the events of these kinds. It reads the broker if there is one, and the log if there is none or while
        the broker delivers nothing. A feed that takes Events `on_air` or off always reads the log."""
        log = LogFeed(self._database, self._log_watcher, kinds=kinds)
        if self._broker is None or on_air:
            return log
        broker = self._broker.feed(kinds, past=log, consumer=consumer)
        return FallbackFeed(broker, log, log_watcher=self._log_watcher, name=consumer)

    def leases(
        self, consumer: str, *, shards: int = 1, member: UUID | None = None, lease: float = LEASE, reads_log: bool = False
    ) -> ShardLeases:
        """Return the leases by which the members of a consumer in all processes share its shards."""
        return ShardLeases(
            self._database,
            consumer,
            shards=shards,
            member=member or new_id(),
            host=self._machine,
            lease=lease,
            reads_log=reads_log,
        )

    def consumer(self, name: str, handler: Handler[Any], *, on_air: bool = False) -> Worker:
        """Return a consumer that is unique in the installation and passes the events of the handler's kinds to it in their order;
        `on_air` as in `feed`."""
        kinds = self._kinds.all if handler.kinds is None else handler.kinds
        feed = self.feed(kinds, consumer=name, on_air=on_air)
        return Consumer(self._database, self.leases(name, reads_log=True), feed=feed, handler=handler, tracer=self._tracer)

    def with_orders(self, handler: Callable[..., OrderWriter], carry_out: CarryOut, *, on_air: bool = False) -> list[Worker]:
        """Return a consumer whose handler writes orders, and the worker that carries them out. `handler` makes the handler, and its
        parameter `wake` is the function that wakes that worker."""
        waker = Waker()
        made = handler(wake=waker.wake)
        orders = Orders(self._database, made.CONSUMER)
        return [
            self.consumer(made.CONSUMER, made, on_air=on_air),
            OrderWorker(orders, carry_out, waker=waker, tracer=self._tracer),
        ]

    def signal(self, kinds: frozenset[str], *, topics: frozenset[str] = frozenset(), on_air: bool = False) -> Signal:
        """Return a signal that reports possible new events of these kinds, and the aggregates that had an event of one of these
        topics; `on_air` as in `feed`."""
        if self._broker is None or on_air:
            return LogSignal(self._database, self._log_watcher, kinds=kinds, topics=topics)
        return FeedSignal(self._database, self.feed(kinds), topics=topics)
