"""The role `outcomes`: reports the outcomes of jobs to their owners, notes failures, and has the films of Events made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from domain.composition.ports import CompositionLookup
from domain.kernel.mapper import EventMapper
from projections.log.streams import Streams
from projections.log_store.log_store import Logbook
from workers.event.films.policy import FilmCommands, FilmOrders
from workers.event.outcomes.failures import CONSUMER as FAILURES
from workers.event.outcomes.failures import FailureNotes
from workers.event.outcomes.policy import OutcomeOrders, OwnerCommands
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker


def outcomes(
    consumers: ConsumerFactory,
    streams: Streams,
    *,
    mapper: EventMapper,
    commands: OwnerCommands,
    logbook: Logbook,
    compositions: CompositionLookup,
    films: FilmCommands,
) -> Sequence[Worker]:
    return [
        *consumers.with_orders(partial(OutcomeOrders, streams, mapper=mapper), commands.carry_out),
        consumers.consumer(FAILURES, FailureNotes(streams, logbook, mapper=mapper)),
        *consumers.with_orders(partial(FilmOrders, streams, compositions, mapper=mapper), films.carry_out),
    ]
