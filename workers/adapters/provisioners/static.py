"""The provisioner of static deployments: the resources exist already, and are taken as the profile lists them."""

from __future__ import annotations

from domain.provision.desired import Desired, Provided
from domain.provision.values import name_of
from workers.ports import Halt, ProvisionProgress


class StaticProvisioner:
    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        return Provided(resources=list(desired.resources), exists=bool(desired.resources))

    async def plan(self, desired: Desired) -> str:
        return "\n".join(f"= {name_of(resource)}, as it is listed" for resource in desired.resources)
