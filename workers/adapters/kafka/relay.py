"""The relay as a worker: finds out which cluster it fills, and begins anew when another one answers in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress
from uuid import UUID

from domain.kernel.errors import Unavailable
from projections.consumers.shares import LEASE, Shares
from projections.kernel.database import Database
from projections.log.growth import Growth
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.publisher import KafkaPublisher
from workers.adapters.kafka.topics import Topics
from workers.kernel.consumer import Consumer
from workers.kernel.log_feed import LogFeed
from workers.relay import Relay, relay_name

_log = logging.getLogger(__name__)
_PAUSE = 1.0


class KafkaRelay:
    """Runs the relay's consumer, under the name of the cluster."""

    def __init__(
        self,
        database: Database,
        growth: Growth,
        *,
        bootstrap: str,
        topics: Topics,
        kinds: Collection[str],
        member: UUID,
        host: str = "",
        lease: float = LEASE,
        limit: int = 500,
    ) -> None:
        self._database = database
        self._growth = growth
        self._bootstrap = bootstrap
        self._topics = topics
        self._kinds = kinds
        self._member = member
        self._host = host
        self._lease = lease
        self._limit = limit
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="relay")

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        trouble = ""
        while not self._stopping.is_set():
            try:
                cluster = await cluster_id(self._bootstrap)
                await self._fill(cluster)
                trouble = ""
            except Unavailable as fault:
                if str(fault) != trouble:
                    _log.warning("relay: %s; trying again until it works", fault)
                trouble = str(fault)
                await self._pause()

    async def _fill(self, cluster: str) -> None:
        """Until another cluster answers, or the relay is stopped."""
        publisher = KafkaPublisher(self._bootstrap, self._topics, kinds=self._kinds, cluster=cluster)
        name = relay_name(cluster)
        shares = Shares(self._database, name, shards=1, member=self._member, host=self._host, lease=self._lease)
        feed = LogFeed(self._database, self._growth, kinds=self._kinds, limit=self._limit)
        consumer = Consumer(self._database, shares, feed=feed, handler=Relay(publisher, kinds=self._kinds))
        await consumer.start()
        try:
            ends = {asyncio.create_task(self._stopping.wait()), asyncio.create_task(publisher.replaced.wait())}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        finally:
            await consumer.stop()
            await publisher.close()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await self._stopping.wait()
