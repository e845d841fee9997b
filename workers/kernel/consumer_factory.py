"""The parts by which workers follow the log and share work: readers, consumers, wake-ups and leases."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Protocol
from uuid import UUID

from domain.kernel.ids import new_id
from projections.consumers.leases import LEASE, LeaseKeeper, ShardLeases
from projections.consumers.orders import Orders
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.log_watcher import LogWatcher
from workers.kernel.consumer import Consumer, Handler
from workers.kernel.fallback_feed import BrokerFeed, FallbackFeed
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.log_reader import LogReader
from workers.kernel.order_worker import CarryOut, OrderPoll, OrderWorker
from workers.kernel.settings import AggregateKinds, Identity
from workers.kernel.wakeups import Waker, WakeupHub
from workers.kernel.worker import SharedWorker, Worker


class Broker(Protocol):
    """A message broker that holds the events of the log."""

    def feed(self, kinds: frozenset[str], *, past: LogFeed, consumers: Collection[str]) -> BrokerFeed:
        """Return a feed of the events of these kinds. `past` reads what the broker no longer holds. Its own programs show the
        consumers as groups of their names."""
        ...


class OrderWriter(Handler[Any], Protocol):
    """A handler whose effects are orders. `CONSUMER` is the name of the consumer and of its orders."""

    CONSUMER: ClassVar[str]


class ConsumerFactory(SharedWorker):
    """Makes consumers, wake-ups and leases for the workers of this process, and runs its readers of the log: one reads the log
    itself, and one the `broker` if there is one."""

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
        self._keeper = LeaseKeeper(database)
        self._order_poll = OrderPoll(database)
        self._of_broker: dict[str, frozenset[str]] = {}
        """The kinds of aggregates of the consumers that read the broker, by their names."""
        self.log = LogReader(database, log_watcher, source=self._log_feed)
        self._shared = self.log if broker is None else LogReader(database, log_watcher, source=self._broker_feed)

    async def start(self) -> None:
        for each in {self.log, self._shared, self._order_poll}:
            await each.start()

    async def stop(self) -> None:
        for each in {self.log, self._shared, self._order_poll}:
            await each.stop()

    def _log_feed(self) -> Feed:
        return LogFeed(self._database, self._log_watcher, kinds=None)

    def _broker_feed(self) -> Feed:
        """Return a feed that reads the broker, and the log while the broker delivers nothing."""
        assert self._broker is not None
        kinds = frozenset().union(*self._of_broker.values())
        log = LogFeed(self._database, self._log_watcher, kinds=kinds)
        broker = self._broker.feed(kinds, past=log, consumers=self._of_broker)
        return FallbackFeed(broker, log, log_watcher=self._log_watcher, name=", ".join(self._of_broker))

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
            keeper=self._keeper,
        )

    def consumer(self, name: str, handler: Handler[Any], *, on_air: bool = False, cadence: float = 0.0) -> Worker:
        """Return a consumer that is unique in the installation and passes the events of the handler's topics to it in their order.
        A consumer that takes Events `on_air` or off always reads the log. `cadence` is the least number of seconds between two
        pages of a consumer that nobody waits for."""
        topics = self._kinds.all if handler.topics is None else handler.topics
        if self._broker is not None and not on_air:
            self._of_broker[name] = frozenset(topic.partition(".")[0] for topic in topics)
        feed = (self.log if on_air else self._shared).feed(topics)
        return Consumer(
            self._database, self.leases(name, reads_log=True), feed=feed, handler=handler, cadence=cadence, tracer=self._tracer
        )

    def with_orders(self, handler: Callable[..., OrderWriter], carry_out: CarryOut, *, on_air: bool = False) -> list[Worker]:
        """Return a consumer whose handler writes orders, and the worker that carries them out. `handler` makes the handler, and its
        parameter `wake` is the function that wakes that worker."""
        waker = Waker()
        made = handler(wake=waker.wake)
        self._order_poll.add(made.CONSUMER, waker)
        orders = Orders(self._database, made.CONSUMER)
        return [
            self.consumer(made.CONSUMER, made, on_air=on_air),
            OrderWorker(orders, carry_out, waker=waker, poll=OrderPoll.SECONDS, tracer=self._tracer),
        ]

    def wakeups(self, topics: Collection[str]) -> WakeupHub:
        """Return a hub that wakes workers when the log has new events of these topics, or kinds of aggregates."""
        return WakeupHub(self.log, topics)
