"""The role `encoding`: has the encoders of a channel take an Event that goes on the air, and leave one that is forced to stop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from domain.kernel.mapper import EventMapper
from projections.log.streams import Streams
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.session.encoding.policy import ChannelOrders, EncodingOrders


def encoding(consumers: ConsumerFactory, streams: Streams, *, mapper: EventMapper, orders: ChannelOrders) -> Sequence[Worker]:
    return consumers.with_orders(partial(EncodingOrders, streams, mapper=mapper), orders.carry_out, on_air=True)
