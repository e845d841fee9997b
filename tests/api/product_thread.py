"""The product behind a real socket, for clients that block."""

from __future__ import annotations

import asyncio
import io
import threading
from functools import partial
from typing import Any

import uvicorn

from api.kernel.app import build as build_application
from api.kernel.log import RequestLog
from api.wiring.core import core
from api.wiring.services import ROUTES, authenticate
from domain.kernel.clock import system_clock
from domain.kernel.encryption import KeyedHash
from projections.log.idempotency import IdempotencyRecords
from tests.api.serving import NO_FILES
from tests.support.application import introduce
from tests.support.services import services
from workers.adapters.outbound_http import GuardedClient


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._ready.set()


class ProductThread(threading.Thread):
    """Runs in a thread with an event loop of its own, because its clients block theirs."""

    def __init__(self, conninfo: str, role: str | None) -> None:
        super().__init__(name="product")
        self._conninfo = conninfo
        self._role = role
        self.ready = threading.Event()
        self.server: _Server | None = None
        self.key = ""

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self.ready.set()

    async def _serve(self) -> None:
        inner, outbound = core(self._conninfo, role=self._role, clock=system_clock), GuardedClient()
        await inner.start()
        try:
            self.key = await introduce(inner, "admin", "admin")
            app = build_application(
                ROUTES,
                services(inner, outbound=outbound, files=NO_FILES),
                authenticate=partial(authenticate, inner.directory),
                idempotency=IdempotencyRecords(inner.database, inner.streams),
                fingerprint=KeyedHash(bytes(32)),
                registry=inner.registry,
                request_log=RequestLog(io.StringIO(), clock=system_clock),
            )
            config = uvicorn.Config(app, port=0, http="httptools", log_level="critical", access_log=False, lifespan="off")
            self.server = _Server(config, self.ready)
            await self.server.serve()
        finally:
            await outbound.close()
            await inner.stop()

    @property
    def address(self) -> str:
        assert self.server is not None, "the product did not start"
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"
