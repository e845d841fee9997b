"""The role `webhooks`: writes a delivery for each webhook that an event of the log concerns."""

from __future__ import annotations

from collections.abc import Sequence

from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import Database
from projections.log.streams import Streams
from projections.webhook.keys import FAN_OUT
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.webhook.fanout import NotificationFanout
from workers.webhook.policy import Meanings
from workers.webhook.sender.fanout import SenderWakeup


def webhooks(
    consumers: ConsumerFactory, database: Database, *, streams: Streams, mapper: EventMapper, meanings: Meanings, wake: SenderWakeup
) -> Sequence[Worker]:
    handler = NotificationFanout(database, streams, mapper=mapper, notified=meanings, wake=wake)
    return [consumers.consumer(FAN_OUT, handler)]
