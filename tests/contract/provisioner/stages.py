"""Each provisioner, with what a test does to the world that it provisions. All is counted in that world."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from domain.provision.desired import Desired
from domain.provision.values import Deployment
from tests.support.engine import once
from tests.workers.provision.foreign_service import KEY, ForeignService
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.site import Site
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.provisioners.service import ServiceLimits, ServiceProvisioner
from workers.adapters.provisioners.service_file import ServiceFiles
from workers.adapters.provisioners.static import StaticProvisioner
from workers.ports.provisioners import Provisioner

QUICK = ServiceLimits(poll=0.02, patience=0.5, request=5.0, pause=0.1)


class World(Protocol):
    """The existing resources. After `break_resource` until `mend`, and after `hold` until `free`, one does not come up or go."""

    def up(self, key: str) -> list[str]: ...

    def break_resource(self, name: str) -> None: ...

    def mend(self, name: str) -> None: ...

    def hold(self, name: str) -> None: ...

    def free(self, name: str) -> None: ...

    async def reached(self, key: str, *, up: str) -> None:
        """Wait until a run has created this resource and waits for the next."""


class Stage:
    """A provisioner of a template. `another` belongs to another process."""

    def __init__(self, provisioner: Provisioner, another: Provisioner, *, world: World | None, settings: Mapping[str, str]) -> None:
        self.provisioner, self.another = provisioner, another
        self.settings = settings
        self._world = world
        self._number = 0

    @property
    def world(self) -> World:
        assert self._world is not None, "static resources are made by nobody"
        return self._world

    def desired(self, key: str, *resources: dict[str, Any], allow_updates: bool = False) -> Desired:
        self._number += 1
        return Desired(
            key=key,
            deployment=Deployment.TEMPLATE,
            template="default",
            settings=self.settings,
            resources=resources,
            allow_updates=allow_updates,
            work=(),
            refused=(),
            number=self._number,
        )


class InMemory:
    """The resources of a twin, or of the service that works with one."""

    def __init__(self, infrastructure: MemoryProvisioner) -> None:
        self._infrastructure = infrastructure

    def up(self, key: str) -> list[str]:
        return sorted(self._infrastructure.up[key])

    def break_resource(self, name: str) -> None:
        self._infrastructure.broken.add(name)

    def mend(self, name: str) -> None:
        self._infrastructure.broken.discard(name)

    def hold(self, name: str) -> None:
        self._infrastructure.gates[name] = asyncio.Event()

    def free(self, name: str) -> None:
        self._infrastructure.gates[name].set()

    async def reached(self, key: str, *, up: str) -> None:
        async def ask() -> bool:
            return up in self._infrastructure.up[key]

        await once(ask)


class OnDisk:
    """The files that `local-exec` makes."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def up(self, key: str) -> list[str]:
        return self._site.up_of(key)

    def break_resource(self, name: str) -> None:
        for mark in (f"fail-{name}", f"fail-down-{name}"):
            self._site.mark(mark)

    def mend(self, name: str) -> None:
        for mark in (f"fail-{name}", f"fail-down-{name}"):
            (self._site.there / mark).unlink()

    def hold(self, name: str) -> None:
        self._site.mark(f"hold-{name}")

    def free(self, name: str) -> None:
        (self._site.there / f"hold-{name}").unlink()

    async def reached(self, key: str, *, up: str) -> None:
        async def ask() -> bool:
            return f'host[\\"{up}\\"]: Creation complete' in self._site.apply_output(key)

        await once(ask)


def in_memory() -> Stage:
    twin = MemoryProvisioner()
    return Stage(twin, twin, world=InMemory(twin), settings={})


def static() -> Stage:
    return Stage(StaticProvisioner(), StaticProvisioner(), world=None, settings={})


def with_terraform(site: Site, program: str) -> Stage:
    return Stage(site.provisioner, site.another(program), world=OnDisk(site), settings={"TF_VAR_dir": str(site.there)})


def over_http(service: ForeignService, client: GuardedClient, root: Path) -> Stage:
    install(root / "templates" / "default", url=service.url, key=KEY)
    files = ServiceFiles(root / "templates", root=root / "work")
    made = [ServiceProvisioner(client, files, limits=QUICK) for _ in range(2)]
    return Stage(made[0], made[1], world=InMemory(service.infrastructure), settings={"size": "small"})


def install(template: Path, **members: str) -> None:
    template.mkdir(parents=True)
    (template / "service.json").write_text(json.dumps(members))
