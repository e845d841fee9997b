"""The composition root of everything that acts on the world: which roles there are, and what each is made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import SystemRandom
from typing import Protocol, TypeVar
from uuid import UUID

from domain.catalogue import AGGREGATES, catalogue
from domain.client.aggregate import Client
from domain.job.aggregate import Job
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, NotFound, Unavailable
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from domain.records.kinds.setting import Setting
from domain.records.kinds.webhook import Webhook
from domain.records.record import AmendRecord
from projections.consumers.shares import Shares
from projections.deliveries.keys import SHARDS
from projections.deliveries.ledger import CONSUMER, DeliveryLedger
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database import Database
from projections.log.growth import Growth
from projections.log.ledger import Ledger
from projections.log.streams import Streams
from projections.logbook.logbook import Level, Logbook
from projections.queue.claims import TaskQueue
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.relay import KafkaRelay
from workers.adapters.kafka.topics import Topics
from workers.adapters.outbound_guard import Network
from workers.callbacks.handler import CallbackFanout
from workers.jobs import controller
from workers.jobs.chronicle import Chronicle
from workers.jobs.conductor import Conductor
from workers.jobs.controller import Controller
from workers.jobs.hosts import Hosts
from workers.jobs.housekeeping import Housekeeping
from workers.jobs.runner import Runner
from workers.jobs.workflow import QUEUES
from workers.jobs.workspaces import Workspaces
from workers.kernel.consumer import Consumer
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed
from workers.kernel.wake import FeedNews, LogNews, Wake
from workers.ports import Outbound
from workers.timekeeper.scheduler import CONSUMER as SCHEDULER
from workers.timekeeper.scheduler import Scheduler
from workers.webhooks.fanout import Fanout
from workers.webhooks.retention import Retention
from workers.webhooks.sender import Sender

_log = logging.getLogger(__name__)
RELAYED = tuple(kind.KIND for kind in AGGREGATES if kind is not Client)
"""The aggregates that Kafka hears of. Who may call us, with marks of their keys, is nobody's business there."""


P = TypeVar("P", bound="Worker")


class Worker(Protocol):
    """Runs until it is stopped, whatever fails meanwhile."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True)
class Ground:
    """What workers stand on. `kafka` are the brokers, None without."""

    database: Database
    growth: Growth
    streams: Streams
    ledger: Ledger
    records: RecordQueries
    vault: Vault
    logbook: Logbook
    outbound: Outbound
    clock: Clock
    kafka: str | None
    media_root: Path
    outbound_allow: Sequence[Network]
    steps: int
    """How many steps of jobs each queue of this process runs at a time."""
    lease: float
    """How many seconds nothing may be heard of a worker before its steps are given to others."""
    drain: float
    """How many seconds those get to end by themselves at the end."""
    host: str
    version: str


class Workers:
    """The roles that one process plays."""

    def __init__(self, ground: Ground, names: Sequence[str]) -> None:
        self._ground = ground
        self.names = [name for name in names if name != "relay" or ground.kafka is not None]
        self._workers: list[Worker] = []

    async def start(self) -> None:
        await self._ground.growth.start()
        shared = Shared(self._ground)
        made = [worker for name in self.names for worker in ROLES[name](self._ground, shared)]
        for worker in (*shared.parts, *made):
            self._workers.append(worker)
            await worker.start()

    async def stop(self) -> None:
        """What others stand on comes last."""
        shared = [worker for worker in self._workers if isinstance(worker, Hosts | Wake | Chronicle)]
        await asyncio.gather(*(worker.stop() for worker in self._workers if worker not in shared))
        for worker in reversed(shared):
            await worker.stop()
        await self._ground.growth.stop()


class _Later:
    """Wakes the sender of this process, once there is one."""

    def __init__(self) -> None:
        self.act: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        self.act()


class Shared:
    """What the roles of one process share, each made when the first asks for it."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.parts: list[Worker] = []
        self.wake_sender = _Later()

    @cached_property
    def jobs(self) -> Wake:
        """Wakes whoever waits for something to do with jobs."""
        ground, kinds = self._ground, frozenset({Job.KIND, Setting.KIND})
        if ground.kafka is None:
            return self._part(Wake(LogNews(ground.database, ground.growth, kinds=kinds)))
        return self._part(Wake(FeedNews(ground.database, _feed(ground, kinds))))

    @cached_property
    def hosts(self) -> Hosts:
        return self._part(
            Hosts(media_root=self._ground.media_root, allow=self._ground.outbound_allow, lease_seconds=self._ground.lease)
        )

    @cached_property
    def chronicle(self) -> Chronicle:
        return self._part(Chronicle(self._ground.database, clock=self._ground.clock))

    def _part(self, part: P) -> P:
        self.parts.append(part)
        return part


def _relay(ground: Ground, shared: Shared) -> Sequence[Worker]:
    assert ground.kafka is not None, "without a broker there is no relay"
    relay = KafkaRelay(
        ground.database, ground.growth, bootstrap=ground.kafka, topics=Topics(), kinds=RELAYED, member=new_id(), host=ground.host
    )
    return [relay]


def _webhooks(ground: Ground, shared: Shared) -> Sequence[Worker]:
    handler = Fanout(ground.database, ground.streams, mapper=EventMapper(catalogue()), wake=shared.wake_sender)
    shares = Shares(ground.database, "webhooks", shards=1, member=new_id(), host=ground.host)
    return [Consumer(ground.database, shares, feed=_feed(ground, handler.kinds), handler=handler)]


def _callback(ground: Ground, shared: Shared) -> Sequence[Worker]:
    handler = CallbackFanout(ground.streams, ground.records, mapper=EventMapper(catalogue()), wake=shared.wake_sender)
    shares = Shares(ground.database, "callback", shards=1, member=new_id(), host=ground.host)
    return [Consumer(ground.database, shares, feed=_feed(ground, handler.kinds), handler=handler)]


def _deliveries(ground: Ground, shared: Shared) -> Sequence[Worker]:
    shares = Shares(ground.database, CONSUMER, shards=SHARDS, member=new_id(), host=ground.host)
    sender = Sender(
        ground.database,
        ground.outbound,
        records=ground.records,
        vault=ground.vault,
        shares=shares,
        disable=Disabling(ground.ledger, ground.logbook, clock=ground.clock).disable,
        version=ground.version,
        clock=ground.clock,
        rng=SystemRandom(),
    )
    shared.wake_sender.act = sender.wake
    return [sender, Retention(DeliveryLedger(ground.database, member=shares.member), clock=ground.clock)]


def _scheduler(ground: Ground, shared: Shared) -> Sequence[Worker]:
    scheduler = Scheduler(
        ground.database,
        ground.ledger,
        outbound=ground.outbound,
        vault=ground.vault,
        settings=EngineSettingsQueries(ground.database),
        shares=Shares(ground.database, SCHEDULER, shards=1, member=new_id(), host=ground.host),
        sleeper=shared.jobs.sleeper(),
        clock=ground.clock,
    )
    return [scheduler]


def _controller(ground: Ground, shared: Shared) -> Sequence[Worker]:
    shares = Shares(ground.database, controller.CONSUMER, shards=controller.SHARDS, member=new_id(), host=ground.host)
    settings = EngineSettingsQueries(ground.database)
    return [Controller(ground.database, ground.ledger, settings=settings, shares=shares, sleeper=shared.jobs.sleeper())]


def _queue(name: str) -> Callable[[Ground, Shared], Sequence[Worker]]:
    """The role that runs the steps of a queue."""

    def make(ground: Ground, shared: Shared) -> Sequence[Worker]:
        member, workspaces = new_id(), Workspaces(ground.media_root)
        queue = TaskQueue(ground.database, member=member, lease=ground.lease)
        conductor = Conductor(
            ground.ledger,
            shared.hosts,
            streams=ground.streams,
            workspaces=workspaces,
            chronicle=shared.chronicle,
            vault=ground.vault,
            settings=EngineSettingsQueries(ground.database),
            worker=f"{ground.host} {str(member)[:8]}",
        )
        runner = Runner(
            queue,
            conductor,
            name=name,
            presence=Shares(ground.database, name, shards=0, member=member, host=ground.host),
            sleeper=shared.jobs.sleeper(),
            watcher=shared.jobs.sleeper(),
            asked_to_end=shared.hosts.drain,
            steps=ground.steps,
            drain=ground.drain,
        )
        return [runner, Housekeeping(ground.database, queue, workspaces=workspaces, clock=ground.clock)]

    return make


ROLES: Mapping[str, Callable[[Ground, Shared], Sequence[Worker]]] = {
    "relay": _relay,
    "webhooks": _webhooks,
    "deliveries": _deliveries,
    "callback": _callback,
    "scheduler": _scheduler,
    "controller": _controller,
    **{name: _queue(name) for name in QUEUES},
}


def _feed(ground: Ground, kinds: frozenset[str]) -> Feed:
    log = LogFeed(ground.database, ground.growth, kinds=kinds)
    if ground.kafka is None:
        return log
    return KafkaFeed(ground.kafka, Topics(), database=ground.database, past=log, kinds=kinds)


class Disabling:
    """What the sender finds out about a webhook comes back as a command, and operators are told."""

    def __init__(self, ledger: Ledger, logbook: Logbook, *, clock: Clock) -> None:
        self._ledger = ledger
        self._logbook = logbook
        self._clock = clock

    async def disable(self, webhook: UUID, reason: str) -> None:
        """Raises `Unavailable`, and may then be asked again. One that is disabled or gone by now is left as it is."""
        command = AmendRecord(webhook, Webhook, {"disabled_at": self._clock()}, still={"disabled_at": None})
        try:
            await self._ledger.execute(command, cause=Cause.by("system"))
        except (Conflict, NotFound) as fault:
            _log.info("the webhook %s is not disabled: %s", webhook, fault)
            return
        with suppress(Unavailable):
            await self._logbook.note(Level.ERROR, f"The webhook {webhook} was disabled: {reason}", subject=str(webhook))
