"""Events: live and recorded video, and the timekeeper, which follows their schedule."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.composition.handlers import CompositionHandlers
from domain.event.aggregate import MediaEvent
from domain.event.deletion import EndingCompositions
from domain.event.ports import EventDetailsLookup, EventLookup, OnAirLookup
from projections.event.queries import EventQueries
from projections.event.view import EVENT_VIEW
from projections.kernel.schema.migrate import Migration

EVENT = Room(
    name="event",
    aggregates=(MediaEvent,),
    views=(EVENT_VIEW,),
    migrations=(
        Migration.read("0069 starts take channels themselves", "event/no_encoding_consumer.sql"),
        Migration.read("0070 availability windows act", "event/availability.sql"),
    ),
    routes=("api.media.event.routes:routes", "api.media.event.counts:routes", "api.media.vod:routes"),
    services={
        EndingCompositions: CompositionHandlers,
        EventDetailsLookup: EventQueries,
        EventLookup: EventQueries,
        OnAirLookup: EventQueries,
    },
    past_states=("api.media.event.presenter:past_states",),
    notified="workers.webhook.notified.event:NOTIFIED",
    owners={MediaEvent.KIND: "domain.event.vod_jobs:vod_command"},
    followups={MediaEvent.KIND: "workers.asset.followups:FilmsFollow"},
    worker_roles=(WorkerRole("timekeeper", "workers.event.role:timekeeper"),),
)
