"""An external service that provisions, as a real HTTP server that follows the contract: its infrastructure is in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from domain.provision.desired import Desired, Provided
from domain.provision.values import Deployment
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from workers.ports.provisioners import Halt

KEY = "the-key-of-the-service"
SECRET = "whsec_c2lnbmVkIGJ5IHRoZSBzZXJ2aWNl"


class Silent:
    async def info(self, message: str) -> None: ...


@dataclass
class Order:
    """The last order for one infrastructure."""

    number: int
    body: dict[str, Any]
    halt: Halt = field(default_factory=Halt)
    task: asyncio.Task[Provided] | None = None


@dataclass
class ForeignService:
    """The service. `answers` come before all others, in their order, like those of a broken service or a proxy. `orders` counts the
    requests that changed the order."""

    url: str = ""
    infrastructure: MemoryProvisioner = field(default_factory=MemoryProvisioner)
    orders: dict[str, Order] = field(default_factory=dict)
    answers: list[Callable[[web.Request], Awaitable[web.StreamResponse]]] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    sent: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests[request.method] += 1
        self.sent.append(dict(request.headers))
        if self.answers:
            planned = self.answers.pop(0)
            return await planned(request)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"reason": f"not {request.headers.get('Authorization')}"}, status=401)
        name, number = request.match_info["id"], int(request.headers["X-Run"])
        stored_order = self.orders.get(name)
        if request.method == "GET":
            return self._status(stored_order)
        if stored_order is not None and number < stored_order.number:
            return web.json_response({"reason": "there is a later one"}, status=409)
        if request.method == "DELETE" and stored_order is None:
            return web.Response(status=404)
        body = await request.json() if request.method == "PUT" else {**(stored_order.body if stored_order else {}), "resources": []}
        self.bodies.append(body)
        if stored_order is None or number > stored_order.number:
            self.orders[name] = order = Order(number, body)
            order.task = asyncio.create_task(self._provide(order, stored_order))
        return web.Response(status=202)

    async def _provide(self, order: Order, before: Order | None) -> Provided:
        if before is not None and before.task is not None:
            before.halt.set()
            await before.task
        body = order.body
        wanted = Desired(
            key=body["infrastructureKey"],
            deployment=Deployment.TEMPLATE,
            template="service",
            settings=body["settings"],
            resources=body["resources"],
            allow_updates=body["allowUpdates"],
            work=(),
            refused=(),
        )
        return await self.infrastructure.provide(wanted, progress=Silent(), halt=order.halt)

    def _status(self, order: Order | None) -> web.Response:
        if order is None:
            return web.Response(status=404)
        assert order.task is not None
        key, wanted = order.body["infrastructureKey"], {resource["name"] for resource in order.body["resources"]}
        if not order.task.done():
            return web.json_response({"run": order.number, "status": "working", "message": "making hosts"})
        up = self.infrastructure.up[key]
        if not up and not wanted:
            return web.Response(status=404)
        resources = [{**result, "ipAddress": f"198.51.100.{len(name)}", "rootPassword": KEY} for name, result in up.items()]
        return web.json_response(
            {"run": order.number, "status": "ended", "resources": resources, "reason": order.task.result().reason}
        )


@asynccontextmanager
async def serving() -> AsyncIterator[ForeignService]:
    service = ForeignService()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/infrastructure/{id}", service.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}/infrastructure"
    try:
        yield service
    finally:
        for order in service.orders.values():
            order.halt.set()
        await asyncio.gather(*(order.task for order in service.orders.values() if order.task), return_exceptions=True)
        await runner.cleanup()
