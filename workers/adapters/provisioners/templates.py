"""The provisioner of templates, which are external services or modules of Terraform."""

from __future__ import annotations

from collections.abc import Sequence

from domain.provision.desired import Desired, Provided
from workers.adapters.provisioners.service import ServiceProvisioner
from workers.adapters.provisioners.terraform import TerraformProvisioner
from workers.ports.provisioners import Halt, ProvisionProgress


class TemplateProvisioner:
    """Chooses the provisioner by what is installed at the time of the run, and by whether a service was given an order for the key
    before."""

    def __init__(self, terraform: TerraformProvisioner, service: ServiceProvisioner) -> None:
        self._terraform = terraform
        self._service = service

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
        return await self._chosen(desired).provide(desired, progress=progress, halt=halt)

    async def plan(self, desired: Desired) -> str:
        return await self._chosen(desired).plan(desired)

    async def local_keys(self) -> Sequence[str]:
        return await self._terraform.local_keys()

    async def forget(self, key: str) -> None:
        await self._terraform.forget(key)

    def _chosen(self, desired: Desired) -> ServiceProvisioner | TerraformProvisioner:
        return self._service if self._service.serves(desired) else self._terraform
