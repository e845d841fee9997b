"""Events with infrastructure profiles, and requests about their infrastructure."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import httpx

from api.wiring.core import Core
from domain.kernel.ports import Invocation
from domain.provision.values import RunEnd
from tests.api.asking import add
from tests.workers.provision.provisioned import Provisioning

RESOURCES: list[dict[str, Any]] = [{"name": "origin-1", "type": "origin"}, {"name": "encoder-1", "type": "Encoder"}]


def document(
    *, settings: dict[str, str] | None = None, key: str | None = None, resources: Any = None, **options: Any
) -> dict[str, Any]:
    request: dict[str, Any] = {
        "options": {"deploymentType": "static", **options},
        "resources": RESOURCES if resources is None else resources,
    }
    if settings is not None:
        request["settings"] = settings
    if key is not None:
        request["infrastructureKey"] = key
    return {"request": request, "workflow": {}}


async def add_profile(http: httpx.AsyncClient, configuration: dict[str, Any] | None = None, **fields: Any) -> str:
    text = json.dumps(document() if configuration is None else configuration)
    answer = await http.post("/api/infrastructureprofile/", json={"name": "Small", "configurationJson": text, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def event_with(http: httpx.AsyncClient, configuration: dict[str, Any] | None = None, **fields: Any) -> str:
    """A new Event with a new profile."""
    return str((await add(http, infrastructureProfileId=await add_profile(http, configuration), **fields))["id"])


async def ask(http: httpx.AsyncClient, method: str, address: str, *, status: int = 200, **query: Any) -> dict[str, Any]:
    answer = await http.request(method, f"/api/provision/{address}", params=query)
    assert answer.status_code == status, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def provision(http: httpx.AsyncClient, event: str, *, status: int = 200, **query: Any) -> dict[str, Any]:
    return await ask(http, "POST", event, status=status, **query)


async def terminate(http: httpx.AsyncClient, event: str, *, status: int = 200) -> dict[str, Any]:
    return await ask(http, "DELETE", event, status=status)


async def reset(http: httpx.AsyncClient, event: str, *, status: int = 200) -> dict[str, Any]:
    return await ask(http, "DELETE", f"reset/{event}", status=status)


async def info(http: httpx.AsyncClient, event: str, *, status: int = 200) -> dict[str, Any]:
    return await ask(http, "GET", event, status=status)


class Ends:
    """Tells how runs ended."""

    def __init__(self, inner: Core) -> None:
        self._handlers = Provisioning(inner).handlers

    async def tell(self, event: str, run: int, *up: dict[str, Any], remaining: bool = False) -> None:
        end = RunEnd(resources=up, left=remaining, reason="no host" if remaining else "")
        await self._handlers.end_run(UUID(event), run, end=end, invocation=Invocation.by("system"))


async def resources(http: httpx.AsyncClient, event: str, *, status: int = 200) -> dict[str, Any]:
    return await ask(http, "GET", f"resources/{event}", status=status)


async def shown(http: httpx.AsyncClient, event: str) -> dict[str, Any]:
    result: dict[str, Any] = (await http.get(f"/api/event/{event}")).json()
    return result
