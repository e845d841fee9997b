"""The composition root of everything that acts on the world: which roles there are, and what each is made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import Protocol
from uuid import UUID

from domain.catalogue import AGGREGATES, catalogue
from domain.client.aggregate import Client
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, NotFound, Unavailable
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from domain.records.kinds.webhook import Webhook
from domain.records.record import AmendRecord
from projections.consumers.shares import Shares
from projections.deliveries.keys import SHARDS
from projections.deliveries.ledger import CONSUMER, DeliveryLedger
from projections.kernel.database import Database
from projections.log.growth import Growth
from projections.log.ledger import Ledger
from projections.log.streams import Streams
from projections.logbook.logbook import Level, Logbook
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.relay import KafkaRelay
from workers.adapters.kafka.topics import Topics
from workers.kernel.consumer import Consumer
from workers.kernel.feed import Feed
from workers.kernel.log_feed import LogFeed
from workers.ports import Outbound
from workers.webhooks.fanout import Fanout
from workers.webhooks.retention import Retention
from workers.webhooks.sender import Sender

_log = logging.getLogger(__name__)
RELAYED = tuple(kind.KIND for kind in AGGREGATES if kind is not Client)
"""The aggregates that Kafka hears of. Who may call us, with marks of their keys, is nobody's business there."""


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
        wake = _Later()
        for name in self.names:
            for worker in ROLES[name](self._ground, wake):
                self._workers.append(worker)
                await worker.start()

    async def stop(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        await self._ground.growth.stop()


class _Later:
    """Wakes the sender of this process, once there is one."""

    def __init__(self) -> None:
        self.act: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        self.act()


def _relay(ground: Ground, wake: _Later) -> Sequence[Worker]:
    assert ground.kafka is not None, "without a broker there is no relay"
    relay = KafkaRelay(
        ground.database, ground.growth, bootstrap=ground.kafka, topics=Topics(), kinds=RELAYED, member=new_id(), host=ground.host
    )
    return [relay]


def _webhooks(ground: Ground, wake: _Later) -> Sequence[Worker]:
    handler = Fanout(ground.database, ground.streams, mapper=EventMapper(catalogue()), wake=wake)
    shares = Shares(ground.database, "webhooks", shards=1, member=new_id(), host=ground.host)
    return [Consumer(ground.database, shares, feed=_feed(ground, handler.kinds), handler=handler)]


def _deliveries(ground: Ground, wake: _Later) -> Sequence[Worker]:
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
    wake.act = sender.wake
    return [sender, Retention(DeliveryLedger(ground.database, member=shares.member), clock=ground.clock)]


ROLES: Mapping[str, Callable[[Ground, _Later], Sequence[Worker]]] = {
    "relay": _relay,
    "webhooks": _webhooks,
    "deliveries": _deliveries,
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
