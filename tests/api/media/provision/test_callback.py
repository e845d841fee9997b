"""Callbacks of a service that provisions: taken when the service has signed them, and only a reason to ask it earlier."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from api.wiring.parts import ServiceTemplates
from domain.provision.desired import Desired
from domain.provision.values import Deployment
from tests.api.asking import assert_problem, last
from tests.api.serving import NO_FILES
from tests.contract.provisioner.stages import QUICK, install
from tests.support.clock import NOON
from tests.support.engine import once
from tests.support.services import services
from tests.workers.provision.foreign_service import KEY, SECRET, serving
from tests.workers.provision.site import A, Notes
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.provisioners.service import ServiceProvisioner
from workers.adapters.provisioners.service_file import ServiceFiles
from workers.ports.provisioners import Halt
from workers.provision.callbacks import CallbackListener
from workers.webhook.sender.attempt import signatures

SIGNING = b"signed by the service"
NOTHING: Mapping[str, str] = {}
PATH = "/api/provision/callback/aws/0123456789abcdef"


@pytest.fixture
def services_by_type(inner: Core, database_url: str, outbound: GuardedClient, tmp_path: Path) -> dict[Any, Any]:
    install(tmp_path / "aws", url="https://provisioner.example", key=KEY, callbackSecret=SECRET)
    install(tmp_path / "silent", url="https://provisioner.example", key=KEY)
    return services(inner, outbound=outbound, files=NO_FILES, given={ServiceTemplates: ServiceTemplates(tmp_path)})


async def call(
    http: httpx.AsyncClient,
    path: str,
    *,
    key: bytes = SIGNING,
    age: float = 0,
    body: bytes = b"{}",
    more: Mapping[str, str] = NOTHING,
) -> httpx.Response:
    timestamp = int(NOON.timestamp() - age)
    headers = {
        "webhook-id": "m1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures([key], body, message="m1", timestamp=timestamp),
        "content-type": "application/json",
        "API-KEY": "",
        **more,
    }
    return await http.post(path, content=body, headers=headers)


async def test_only_what_the_service_has_signed_is_taken(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    assert (await call(http, PATH, body=b'{"run": 7}')).status_code == 202
    old = f"v1,AAAA {signatures([SIGNING], b'{}', message='m1', timestamp=int(NOON.timestamp()))}"
    assert (await call(http, PATH, more={"webhook-signature": old})).status_code == 202
    refused = [
        await call(http, PATH, key=b"another"),
        await call(http, PATH, age=301),
        await call(http, PATH, age=-301),
        await call(http, PATH, more={"webhook-timestamp": "soon"}),
        await call(http, PATH, more={"webhook-signature": ""}),
        await call(http, PATH, more={"webhook-id": "m2"}),
        await call(http, PATH.replace("aws", "silent"), key=b""),
        await call(http, PATH.replace("aws", "unknown")),
        await call(http, PATH.replace("aws", "%2e%2e")),
        await call(http, f"/api/provision/callback/aws/{'x' * 201}"),
    ]
    for answer in refused:
        assert_problem(answer, 401)
    assert await last(inner) == before


async def test_the_service_is_asked_at_once(http: httpx.AsyncClient, inner: Core, tmp_path: Path) -> None:
    client = GuardedClient([ip_network("127.0.0.0/8")])
    async with serving() as service:
        back = "https://media.example/api/provision/callback/aws/"
        install(tmp_path / "there" / "default", url=service.url, key=KEY, callbackUrl=back)
        limits = replace(QUICK, poll=600.0)
        provisioner = ServiceProvisioner(client, ServiceFiles(tmp_path / "there", root=tmp_path / "work"), limits=limits)
        listener = CallbackListener(inner.database, provisioner.hurry)
        await listener.start()
        service.infrastructure.gate.clear()
        wanted = Desired(
            key="k",
            deployment=Deployment.TEMPLATE,
            template="default",
            settings={},
            resources=[A],
            allow_updates=False,
            work=(),
            refused=(),
        )
        running = asyncio.create_task(provisioner.provide(wanted, progress=Notes(), halt=Halt()))

        async def asked() -> bool:
            return service.requests["GET"] == 1

        await once(asked)
        service.infrastructure.gate.set()
        name = service.bodies[0]["callbackUrl"].removeprefix("https://media.example")

        async def ended() -> bool:
            assert (await call(http, name)).status_code == 202
            return running.done()

        await once(ended)
        assert [resource["name"] for resource in (await running).resources] == ["a"]
        await listener.stop()
    await client.close()
