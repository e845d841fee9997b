"""The worker role `callback`, without the removal of callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.kernel.mapper import EventMapper
from projections.consumers.leases import ShardLeases
from projections.record.queries import RecordQueries
from tests.workers.consumed import consumed
from workers.webhook.callbacks.fanout import CallbackFanout
from workers.webhook.callbacks.removal import CONSUMER


@asynccontextmanager
async def consuming(inner: Core) -> AsyncIterator[None]:
    """Run the consumer."""
    records, mapper = RecordQueries(inner.database, RECORDS), EventMapper(inner.catalogue)
    handler = CallbackFanout(inner.streams, records, mapper=mapper, wake=lambda _: None)
    leases = ShardLeases(inner.database, CONSUMER, shards=1, member=uuid4(), host="test")
    async with consumed(inner, handler, leases):
        yield
