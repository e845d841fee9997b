"""The provisioner of templates: what the operator has installed is a service of somebody else, or a module of Terraform."""

from __future__ import annotations

import asyncio

from domain.provision.desired import Desired, Provided
from workers.adapters.provisioners.service import ServiceProvisioner
from workers.adapters.provisioners.terraform import TerraformProvisioner
from workers.ports import ProvisionProgress


class TemplateProvisioner:
    """Chooses by what is installed at the time of the run, and by who was asked for the key before."""

    def __init__(self, terraform: TerraformProvisioner, service: ServiceProvisioner) -> None:
        self._terraform = terraform
        self._service = service

    async def provide(self, desired: Desired, *, progress: ProvisionProgress, halt: asyncio.Event) -> Provided:
        chosen = self._service if self._service.serves(desired) else self._terraform
        return await chosen.provide(desired, progress=progress, halt=halt)
