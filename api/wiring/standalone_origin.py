"""The built-in origin as a separate process without a database."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from api.guards.limits import Connections
from api.guards.proxies import Proxies
from api.http import app as http
from api.http.app import Application
from api.http.request import Caller
from api.kernel import docs_page
from api.kernel.authentication import Authorizer
from api.kernel.errors import failure_of
from api.kernel.log import RequestLog
from api.kernel.request import Request
from api.kernel.surfaces import OPERATIONS
from api.kernel.version import product_version
from api.operations.routes import liveness
from api.origin import ingest, routes
from api.origin.access import MOST_READ, OriginAccess
from api.published.readers import Readers
from api.wiring.origin import live_origin
from api.wiring.product import connection_limits, hosts
from api.wiring.settings import Settings
from domain.kernel.clock import system_clock
from domain.kernel.encryption import KeyRing
from projections.kernel.background_task import start_forever
from workers.kernel.fair_places import FairPlaces
from workers.origin.live_origin import LiveOrigin

_log = logging.getLogger(__name__)
_TIDY_EVERY = 60.0
_LOOK_EVERY = 4.0


class StandaloneOrigin:
    """The origin that the command line starts and stops."""

    def __init__(
        self, app: Application, *, connections: Connections, origin: LiveOrigin, ring: KeyRing, request_log: RequestLog
    ) -> None:
        self.app = app
        self.connections = connections
        self._origin = origin
        self._ring = ring
        self._request_log = request_log
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            start_forever(self._tidy, what="removal of recordings"),
            start_forever(self._look, what="look for a new master key"),
        ]

    async def _tidy(self) -> None:
        await asyncio.sleep(_TIDY_EVERY)
        await self._origin.tidy()

    async def _look(self) -> None:
        """Check the key files: without a database there is no other sign that the master key is being replaced."""
        await asyncio.sleep(_LOOK_EVERY)
        if self._ring.look():
            _log.info("switched to another master key")

    def drain(self) -> None:
        self.app.drain()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._request_log.flush()

    def summary(self) -> Sequence[tuple[str, str]]:
        return ()


def build(settings: Settings, ring: KeyRing) -> StandaloneOrigin:
    origin, request_log = live_origin(settings, ring.ingest), RequestLog(sys.stderr, clock=system_clock)
    services: dict[Any, Any] = {OriginAccess: OriginAccess(origin, Readers(FairPlaces(MOST_READ)))}
    app = http.build(
        (ingest.routes, routes.routes, liveness, docs_page.routes),
        services,
        authorize=Authorizer(nobody),
        failure_of=failure_of,
        request_class=Request,
        public_url=settings.public_url or "",
        fallback=OPERATIONS,
        registry=CollectorRegistry(),
        request_log=request_log,
        title="medialedger",
        version=product_version(),
    )
    proxies = Proxies(settings.trusted_proxies)
    connections = Connections(connection_limits(settings), hosts=hosts(settings), proxies=proxies, prefix="medialedger_http")
    return StandaloneOrigin(app, connections=connections, origin=origin, ring=ring, request_log=request_log)


async def nobody(key: str) -> Caller | None:
    """Return None: no call needs the key of a client."""
    return None
