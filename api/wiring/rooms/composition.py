"""Compositions: playlists of Events, from which films are made or which encoders play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.composition.aggregate import Composition
from domain.composition.handlers import CompositionHandlers
from domain.composition.row import CompositionRow
from domain.job.handlers import JobHandlers
from domain.kernel.clock import Clock
from projections.composition.queries import CompositionQueries
from projections.composition.view import COMPOSITION_VIEW
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from domain.job.outcome import JobOutcome
    from domain.kernel.ports import Invocation
    from workers.event.outcomes.policy import Followup, OwnerCommand
    from workers.wiring import Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media.composition import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    get = services.get
    return {
        CompositionQueries: lambda: CompositionQueries(get(Database)),
        CompositionHandlers: lambda: handlers_of(
            get(Database),
            get(CommandExecutor),
            records=get(RecordQueries),
            jobs=get(JobHandlers),
            clock=services.environment.clock,
        ),
    }


def handlers_of(
    database: Database, executor: CommandExecutor, *, records: RecordQueries, jobs: JobHandlers, clock: Clock
) -> CompositionHandlers:
    events = EventQueries(database)
    return CompositionHandlers(
        executor, CompositionQueries(database), events=events, known_events=events, records=records, jobs=jobs, clock=clock
    )


def composition_handlers(context: WorkerContext) -> CompositionHandlers:
    """Return the use cases of compositions for workers."""
    from api.wiring.job_handlers import job_handlers_of

    jobs = job_handlers_of(context)
    return handlers_of(context.database, context.executor, records=context.records, jobs=jobs, clock=context.clock)


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.composition.responses import ComposePlaylist

    async def composition(root: Composition, moment: Moment) -> Any:
        return ComposePlaylist.of(CompositionRow.of(root))

    return {Composition.KIND: composition}


def _owners() -> Mapping[str, OwnerCommand]:
    from domain.composition.handlers import commands_of

    return {Composition.KIND: commands_of}


def _followups(context: WorkerContext) -> Mapping[str, Followup]:
    from api.wiring.rooms.event import assets_of_films

    follow = assets_of_films(context)

    async def of_event(key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        await follow(outcome.content_id, outcome, invocation)

    return {Composition.KIND: of_event}


def films(context: WorkerContext) -> Sequence[Worker]:
    """Return the consumer of changes to Events that require a film, and the worker that carries its orders out."""
    from api.wiring.job_handlers import job_handlers_of
    from workers.event.films.policy import CONSUMER, FilmCommands, FilmOrders, StopCaptures
    from workers.kernel.wakeups import Waker

    waker, compositions = Waker(), CompositionQueries(context.database)
    handler = FilmOrders(context.streams, compositions, mapper=context.mapper, wake=waker.wake)
    jobs = job_handlers_of(context)
    captures = StopCaptures(EventQueries(context.database), context.records, jobs=jobs, notes=context.logbook)
    commands = FilmCommands(captures, composition_handlers(context))
    return [context.consumer(CONSUMER, handler), context.order_worker(CONSUMER, commands.carry_out, waker=waker)]


COMPOSITION = Room(
    name="composition",
    aggregates=(Composition,),
    views=(COMPOSITION_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    owners=_owners,
    followups=_followups,
)
