"""The provisioner of static deployments: the resources exist already and are used as the profile lists them."""

from __future__ import annotations

from collections.abc import Sequence

from domain.provision.desired import Desired, Provided
from domain.provision.values import name_of
from workers.ports.provisioners import Halt, ProvisionProgress


class StaticProvisioner:
    """A provisioner that creates and stores nothing."""

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        return Provided(resources=list(desired.resources), exists=bool(desired.resources))

    async def plan(self, desired: Desired) -> str:
        return "\n".join(f"= {name_of(resource)}, as it is listed" for resource in desired.resources)

    async def local_keys(self) -> Sequence[str]:
        return ()

    async def forget(self, key: str) -> None:
        """Do nothing, because nothing is stored."""
