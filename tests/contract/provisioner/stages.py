"""Each provisioner, with what a test does to the world that it provisions. All is counted in that world."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from domain.provision.desired import Desired
from domain.provision.values import Deployment
from tests.workers.jobs.engine import once
from tests.workers.provisioning.foreign_service import KEY, ForeignService
from tests.workers.provisioning.memory_provisioner import MemoryProvisioner
from tests.workers.provisioning.site import Site
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.provisioners.service import ServiceLimits, ServiceProvisioner
from workers.adapters.provisioners.service_file import ServiceFiles
from workers.adapters.provisioners.static import StaticProvisioner
from workers.ports import Provisioner

QUICK = ServiceLimits(poll=0.02, patience=0.5, request=5.0, pause=0.1)


class World(Protocol):
    """What is there. `broken` resources do not come up and do not go; `held` ones do not until they are `freed`."""

    def up(self, key: str) -> list[str]: ...

    def broken(self, name: str) -> None: ...

    def mended(self, name: str) -> None: ...

    def held(self, name: str) -> None: ...

    def freed(self, name: str) -> None: ...

    async def reached(self, key: str, *, up: str) -> None:
        """A run has made this resource, and waits for the next."""


class Stage:
    """A provisioner of a template. `another` is that of another process."""

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
    """What a twin has made, and what the service has that works with one."""

    def __init__(self, infrastructure: MemoryProvisioner) -> None:
        self._infrastructure = infrastructure

    def up(self, key: str) -> list[str]:
        return sorted(self._infrastructure.up[key])

    def broken(self, name: str) -> None:
        self._infrastructure.broken.add(name)

    def mended(self, name: str) -> None:
        self._infrastructure.broken.discard(name)

    def held(self, name: str) -> None:
        self._infrastructure.gates[name] = asyncio.Event()

    def freed(self, name: str) -> None:
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

    def broken(self, name: str) -> None:
        for mark in (f"fail-{name}", f"fail-down-{name}"):
            self._site.mark(mark)

    def mended(self, name: str) -> None:
        for mark in (f"fail-{name}", f"fail-down-{name}"):
            (self._site.there / mark).unlink()

    def held(self, name: str) -> None:
        self._site.mark(f"hold-{name}")

    def freed(self, name: str) -> None:
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
