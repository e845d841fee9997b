"""The consumer of films and its orders, on a real log."""

from __future__ import annotations

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.job_handlers import job_handlers
from api.wiring.rooms.composition import handlers_of
from domain.composition.handlers import CompositionHandlers
from domain.job.handlers import JobHandlers
from domain.kernel.encryption import SecretCipher
from domain.kernel.mapper import EventMapper
from projections.composition.queries import CompositionQueries
from projections.consumers.orders import Orders
from projections.event.queries import EventQueries
from projections.log.reader import read
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from workers.event.films.policy import CONSUMER, FilmCommands, FilmOrders, StopCaptures
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker


def jobs_of(inner: Core) -> JobHandlers:
    records, vault = RecordQueries(inner.database, RECORDS), Vault(inner.database, SecretCipher(bytes(32)))
    return job_handlers(inner.database, inner.executor, streams=inner.streams, records=records, vault=vault, clock=inner.clock)


def composition_handlers(inner: Core, *, jobs: JobHandlers) -> CompositionHandlers:
    records = RecordQueries(inner.database, RECORDS)
    return handlers_of(inner.database, inner.executor, records=records, jobs=jobs, clock=inner.clock)


def worker(inner: Core) -> OrderWorker:
    records, notes = RecordQueries(inner.database, RECORDS), Logbook(inner.database, inner.clock, machine="here")
    captures = StopCaptures(EventQueries(inner.database), records, jobs=jobs_of(inner), notes=notes)
    compositions = composition_handlers(inner, jobs=jobs_of(inner))
    return OrderWorker(Orders(inner.database, CONSUMER), FilmCommands(captures, compositions).carry_out, waker=Waker())


async def fed(inner: Core, *, after: int = 0) -> None:
    """Feed the log to the handler, as the consumer does."""
    queries = CompositionQueries(inner.database)
    handler = FilmOrders(inner.streams, queries, mapper=EventMapper(inner.catalogue), wake=lambda: None)
    records = [entry for entry in await read(inner.database, after, limit=100_000) if entry.kind in handler.kinds]
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
