"""The provisioners, by name. `stage` has all of them, `making` those that make something themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.contract.provisioner import stages
from tests.contract.provisioner.stages import Stage
from tests.support.programs import program
from tests.workers.provision.foreign_service import serving
from tests.workers.provision.site import Site
from workers.adapters.outbound_http import GuardedClient

MAKING = ("memory", "terraform", "http")


@pytest.fixture(params=("static", *MAKING))
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield await opened(request.param, tmp_path, stack)


@pytest.fixture(params=MAKING)
async def making(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield await opened(request.param, tmp_path, stack)


async def opened(name: str, root: Path, stack: AsyncExitStack) -> Stage:
    match name:
        case "static":
            return stages.static()
        case "memory":
            return stages.in_memory()
        case "terraform":
            terraform = program("terraform")
            return stages.with_terraform(Site(root, terraform), terraform)
        case _:
            service = await stack.enter_async_context(serving())
            client = GuardedClient([ip_network("127.0.0.0/8")])
            stack.push_async_callback(client.close)
            return stages.over_http(service, client, root)
