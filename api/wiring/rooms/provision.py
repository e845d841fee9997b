"""Provisioning: the infrastructure of Events."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.channel.hosts import ProvisionedHosts
from domain.provision.aggregate import ProvisionInfo
from projections.provision.queries import ProvisionQueries
from projections.provision.view import PROVISION_VIEW

PROVISION = Room(
    name="provision",
    aggregates=(ProvisionInfo,),
    views=(PROVISION_VIEW,),
    routes=("api.media.provision.routes:routes",),
    services={
        ProvisionedHosts: ProvisionQueries,
        "workers.ports.provisioners:Provisioners": "api.wiring.providers:provisioners",
        "workers.provision.callbacks:ServiceCallbacks": "api.wiring.providers:service_callbacks",
    },
    past_states=("api.media.provision.routes:past_states",),
    worker_roles=(WorkerRole("provisioning", "workers.provision.role:provisioning"),),
)
