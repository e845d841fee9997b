"""The workers of one process: starts those of its roles, and stops them in reverse order. The roles are defined by the rooms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, cast

from domain.kernel.clock import Clock
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from domain.kernel.media_files import MediaFiles
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer
from projections.log.executor import CommandExecutor
from projections.log.log_watcher import LogWatcher
from projections.log.streams import Streams
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.outbound_guard import Network
from workers.kernel.confinement import NO_PLACES, Places
from workers.kernel.fallback_feed import FallbackFeed
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.quiet import QuietMode
from workers.kernel.wakeups import FeedSignal, LogSignal, Signal, Waker
from workers.playout.ports import ITEM_LIMITS, ItemLimits
from workers.ports.buckets import BucketAddress
from workers.ports.checkpoints import CheckpointPlaces
from workers.ports.outbound import Connections, DownloadLimits, Notifying
from workers.ports.targets import OpenDestination, Targets, TargetSettings

if TYPE_CHECKING:
    from workers.event.outcomes.policy import Followup, OwnerCommand
    from workers.kernel.consumer import Handler
    from workers.kernel.forked import ForkServer
    from workers.kernel.order_worker import CarryOut
    from workers.webhook.policy import Notified

FOLLOW: Final = 2.0
"""Seconds between two checks if the installation is to be quiet."""

_log = logging.getLogger(__name__)
S = TypeVar("S")
W = TypeVar("W", bound="Worker")


class Worker(Protocol):
    """A worker that runs from `start` to `stop`. A fault does not end it: it retries."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True)
class WorkerContext:
    """The dependencies and settings that every worker role may use."""

    database: Database
    log_watcher: LogWatcher
    streams: Streams
    mapper: EventMapper
    executor: CommandExecutor
    records: RecordQueries
    vault: Vault
    logbook: Logbook
    outbound: Notifying
    connections: Connections
    clock: Clock
    metrics: WorkerMetrics
    kafka: KafkaConnection | None
    """The Kafka brokers; None without Kafka."""
    kinds: frozenset[str]
    """All kinds of aggregates."""
    relayed: frozenset[str]
    """The kinds of aggregates whose events are sent to Kafka."""
    notified: Callable[[], Mapping[str, Notified]]
    """The meaning of domain events for the webhooks of an Event, by the kinds of their aggregates."""
    home: Path
    owners: Callable[[], Mapping[str, OwnerCommand]]
    """The commands that report outcomes of jobs to their owners, by the kinds of the owners."""
    followups: Callable[[WorkerContext], Mapping[str, Followup]]
    """The actions after an owner was notified of an outcome, by the kinds of the owners."""
    media_root: Path
    """The directory in which steps work on this machine, and which holds media unless they are in a bucket."""
    files: MediaFiles
    """Published media."""
    outbound_allow: Sequence[Network]
    own_origin: str | None
    """The address of the built-in origin, such as `http://127.0.0.1:8080`; None if there is none."""
    ingest_headers: Callable[[str, int], Mapping[str, str]]
    """The headers of a request to this URL in the session of this number: the token, if it is a point of our origin."""
    step_tokens: Callable[[Mapping[str, Any]], Mapping[str, str]]
    """The tokens with which a step of these parameters reads points of our origin, by their names."""
    downloads: DownloadLimits
    steps: int
    """The number of steps of jobs that each queue of this process runs at a time."""
    lease: float
    """Seconds without a sign of life from a worker after which its steps are assigned to others."""
    drain: float
    """Seconds for which running steps may continue when the process stops."""
    host: str
    public_host: str
    """The host name under which callers reach the API."""
    version: str
    targets: Targets
    """Makes the targets of destinations."""
    open_destination: Callable[[WorkerContext], OpenDestination]
    """Opens the destinations of publications for the jobs that upload."""
    quiet: QuietMode = field(default_factory=QuietMode)
    media_bucket: BucketAddress | None = None
    encoder_devices: bool = False
    """True if encoders may read cameras and sound cards of the machine."""
    playout_limits: ItemLimits = ITEM_LIMITS
    """The limits of the files that are fetched for playouts."""
    target_settings: TargetSettings = field(default_factory=TargetSettings)
    """Settings of the operator for destinations."""
    terraform: Path | None = None
    """The path of the program that provisions templates; None to search the usual places."""
    checkpoints: CheckpointPlaces = field(default_factory=CheckpointPlaces)
    tracer: Tracer = UNTRACED
    places: Places = NO_PLACES
    """Paths that steps and encoders may read and write in addition to what they need, and paths that are hidden from them."""
    step_server: ForkServer | None = None
    """Starts the processes of steps; None for a server of this process alone."""

    def feed(self, kinds: frozenset[str], *, consumer: str | None = None, on_air: bool = False) -> Feed:
        """Return a feed of the events of these kinds. It reads Kafka if there is a broker, and the log if there is none or while it
        delivers nothing. A feed that takes Events `on_air` or off always reads the log. Kafka's own programs show the consumer as a
        group of its name."""
        log = LogFeed(self.database, self.log_watcher, kinds=kinds)
        if self.kafka is None or on_air:
            return log
        from workers.adapters.kafka.feed import KafkaFeed
        from workers.adapters.kafka.topics import Topics

        topics = Topics()
        group = None if consumer is None else topics.group(consumer)
        broker = KafkaFeed(self.kafka, topics, database=self.database, past=log, kinds=kinds, group=group)
        return FallbackFeed(broker, log, log_watcher=self.log_watcher, name=consumer)

    def consumer(self, name: str, handler: Handler[Any], *, on_air: bool = False) -> Worker:
        """Return a consumer that is unique in the installation and passes the events of the handler's kinds to it in their order;
        `on_air` as in `feed`."""
        from projections.consumers.leases import ShardLeases
        from workers.kernel.consumer import Consumer

        leases = ShardLeases(self.database, name, shards=1, member=new_id(), host=self.host)
        feed = self.feed(self.kinds if handler.kinds is None else handler.kinds, consumer=name, on_air=on_air)
        return Consumer(self.database, leases, feed=feed, handler=handler, tracer=self.tracer)

    def order_worker(self, consumer: str, carry_out: CarryOut, *, waker: Waker) -> Worker:
        """Return a worker that carries out the orders that a consumer has written."""
        from projections.consumers.orders import Orders
        from workers.kernel.order_worker import OrderWorker

        return OrderWorker(Orders(self.database, consumer), carry_out, waker=waker, tracer=self.tracer)

    def signal(self, kinds: frozenset[str], *, topics: frozenset[str] = frozenset(), on_air: bool = False) -> Signal:
        """Return a signal that reports possible new events of these kinds, and the aggregates that had an event of one of these
        topics; `on_air` as in `feed`."""
        if self.kafka is None or on_air:
            return LogSignal(self.database, self.log_watcher, kinds=kinds, topics=topics)
        return FeedSignal(self.database, self.feed(kinds), topics=topics)


class SharedWorkers:
    """Objects that the roles of one process share, by type; each is made when a role first asks for it."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self._made: dict[type, object] = {}

    def get(self, kind: type[S], make: Callable[[], S]) -> S:
        if kind not in self._made:
            self._made[kind] = make()
        return cast(S, self._made[kind])

    def worker(self, kind: type[W], make: Callable[[], W]) -> W:
        """Return the shared worker of this type. It is started before the workers of the roles."""
        if kind not in self._made:
            self.workers.append(self.get(kind, make))
        return self.get(kind, make)


MakeWorkers = Callable[[WorkerContext, SharedWorkers], Sequence[Worker]]


class RunningGroups:
    """Running workers, in the groups in which they were started."""

    def __init__(self) -> None:
        self._started = AsyncExitStack()

    async def start(self, workers: Sequence[Worker]) -> None:
        """Start a group. Its workers are stopped at the same time, since some take a while to finish their work. `stop` also stops
        a group whose start failed half-way."""
        begun: list[Worker] = []

        async def stop() -> None:
            stopped = await asyncio.gather(*(worker.stop() for worker in begun), return_exceptions=True)
            for fault in filter(None, stopped):
                raise fault

        self._started.push_async_callback(stop)
        for worker in workers:
            begun.append(worker)
            await worker.start()

    async def stop(self) -> None:
        """Stop the groups in reverse order. New groups can be started afterwards."""
        await self._started.aclose()


class Workers(BackgroundTask):
    """The worker roles of one process. The `permanent` workers run regardless of the roles.

    While the installation is quiet, only the roles named in `inside` run, and they read the log instead of Kafka. The order is
    checked every two seconds, and all roles are restarted when it has changed.
    """

    WHAT: ClassVar[str] = "the order to be quiet"

    def __init__(
        self,
        context: WorkerContext,
        roles: Mapping[str, MakeWorkers],
        *,
        inside: Collection[str] = (),
        permanent: Sequence[Worker] = (),
    ) -> None:
        self.names = tuple(roles)
        self._context = context
        self._permanent = permanent
        self._roles = roles
        self._inside = inside
        self._always, self._running = RunningGroups(), RunningGroups()
        self._followed: bool | None = None
        """The order that the roles run by; None while they are stopped."""

    async def start(self) -> None:
        """Start the roles according to the order to be quiet. `stop` must be called even if this fails half-way."""
        await self._always.start([self._context.log_watcher, *self._permanent])
        await self._follow()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        try:
            await self._running.stop()
        finally:
            await self._always.stop()

    async def _turn(self) -> None:
        await asyncio.sleep(FOLLOW)
        await self._follow()

    async def _follow(self) -> None:
        await self._context.quiet.read(self._context.records)
        quiet = self._context.quiet.on
        self._context.metrics.quiet.set(quiet)
        if quiet == self._followed:
            return
        if self._followed is not None or quiet:
            _log.warning("the installation is quiet: nothing leaves it" if quiet else "the installation is not quiet any more")
        self._followed = None
        await self._running.stop()
        await self._start_roles(quiet=quiet)
        self._followed = quiet

    async def _start_roles(self, *, quiet: bool) -> None:
        """Start the shared workers first, so that they stop last."""
        context, shared = replace(self._context, kafka=None) if quiet else self._context, SharedWorkers()
        roles = {name: make for name, make in self._roles.items() if not quiet or name in self._inside}
        made = [worker for make in roles.values() for worker in make(context, shared)]
        for worker in shared.workers:
            await self._running.start([worker])
        await self._running.start(made)
