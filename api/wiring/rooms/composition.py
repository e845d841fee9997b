"""Compositions: playlists of Events, from which films are made or which encoders play."""

from __future__ import annotations

from api.wiring.room import Room
from domain.composition.aggregate import Composition
from domain.composition.ports import CompositionLookup, KnownEvents
from projections.composition.queries import CompositionQueries
from projections.composition.view import COMPOSITION_VIEW
from projections.event.queries import EventQueries

COMPOSITION = Room(
    name="composition",
    aggregates=(Composition,),
    views=(COMPOSITION_VIEW,),
    routes=("api.media.composition.routes:routes",),
    services={CompositionLookup: CompositionQueries, KnownEvents: EventQueries},
    past_states=("api.media.composition.responses:past_states",),
    owners={Composition.KIND: "domain.composition.handlers:commands_of"},
    followups={Composition.KIND: "workers.asset.followups:ComposedFilmsFollow"},
)
