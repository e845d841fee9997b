"""The provisioner of static deployments: the resources exist already, and are taken as the profile lists them."""

from __future__ import annotations

import asyncio

from domain.provision.desired import Desired, Provided
from workers.ports import ProvisionProgress


class StaticProvisioner:
    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: asyncio.Event) -> Provided:
        return Provided(resources=list(desired.resources), exists=bool(desired.resources))
