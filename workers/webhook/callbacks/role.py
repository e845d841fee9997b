"""The role `callback`: writes a delivery for each callback of a job, a publication or infrastructure."""

from __future__ import annotations

from collections.abc import Sequence

from domain.kernel.mapper import EventMapper
from projections.log.streams import Streams
from projections.record.queries import RecordQueries
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.webhook.callbacks.fanout import CallbackFanout
from workers.webhook.callbacks.removal import CONSUMER, CallbackRemoval
from workers.webhook.sender.fanout import SenderWakeup


def callback(
    consumers: ConsumerFactory,
    streams: Streams,
    *,
    records: RecordQueries,
    mapper: EventMapper,
    wake: SenderWakeup,
    removal: CallbackRemoval,
) -> Sequence[Worker]:
    return [consumers.consumer(CONSUMER, CallbackFanout(streams, records, mapper=mapper, wake=wake)), removal]
