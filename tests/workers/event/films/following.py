"""The consumer of films and its orders, on a real log."""

from __future__ import annotations

from api.wiring.core import Core
from domain.composition.handlers import CompositionHandlers
from domain.job.handlers import JobHandlers
from domain.kernel.mapper import EventMapper
from projections.composition.queries import CompositionQueries
from projections.consumers.orders import Orders
from projections.log.reader import read
from tests.support.services import container
from workers.event.films.policy import CONSUMER, FilmCommands, FilmOrders
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker


def jobs_of(inner: Core) -> JobHandlers:
    return container(inner).get(JobHandlers)


def composition_handlers(inner: Core, *, jobs: JobHandlers) -> CompositionHandlers:
    return container(inner, given={JobHandlers: jobs}).get(CompositionHandlers)


def worker(inner: Core) -> OrderWorker:
    commands = container(inner).get(FilmCommands)
    return OrderWorker(Orders(inner.database, CONSUMER), commands.carry_out, waker=Waker())


async def fed(inner: Core, *, after: int = 0) -> None:
    """Feed the log to the handler, as the consumer does."""
    queries = CompositionQueries(inner.database)
    handler = FilmOrders(inner.streams, queries, mapper=EventMapper(inner.catalogue), wake=lambda: None)
    records = [entry for entry in await read(inner.database, after, limit=100_000) if entry.topic in handler.topics]
    effects = await handler.prepare(records) if records else None
    if effects is not None:
        async with inner.database.connection() as connection, connection.transaction():
            await handler.write(connection, effects)


async def followed(inner: Core) -> None:
    """Carry out everything that follows from the log, from its start: earlier orders are repeated."""
    await fed(inner)
    order_worker = worker(inner)
    while await order_worker.carry_out():
        pass
