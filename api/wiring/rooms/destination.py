"""Destinations: the platforms and servers that publications go to, and their custom properties."""

from __future__ import annotations

from api.wiring.room import Room
from domain.destination.handlers import TargetTrial
from domain.record.kinds.destination import Destination
from workers.ports.targets import Targets

DESTINATION = Room(
    name="destination",
    aggregates=(Destination,),
    routes=("api.media.destination:routes", "api.media.destination_property:routes"),
    services={
        TargetTrial: "workers.publication.trial:TargetTrials",
        Targets: "api.wiring.providers:targets",
        "workers.publication.trial:TargetTrials": "api.wiring.providers:target_trials",
    },
    past_states=("api.media.destination:past_states", "api.media.destination_property:past_states"),
)
