"""The product in one process: the API, the worker roles of this process, and the services that both use."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from socket import gethostname
from typing import Any, TextIO

from api.guards.hosts import Hosts, host_name
from api.guards.limits import ConnectionLimits, Connections
from api.guards.proxies import Proxies
from api.http.app import Application
from api.http.cross_origin import CrossOrigin
from api.http.request import Caller
from api.kernel.api_keys import new_api_key
from api.kernel.app import build as build_application
from api.kernel.authentication import Authenticate
from api.kernel.log import RequestLog, as_text
from api.kernel.shell_access import ShellKeys
from api.kernel.version import product_version
from api.media.health_overview import SAMPLE_EVERY, Overview
from api.origin.access import OriginAccess
from api.published.files import PublishedFiles
from api.speke.rate import TokenBuckets
from api.speke.usage_recorder import UsageRecorder
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.core import Core
from api.wiring.origin import live_origin
from api.wiring.parts import ServedMedia
from api.wiring.quiet import order_quiet
from api.wiring.services import PROVIDERS, ROUTES, authenticate, services_by_type
from api.wiring.settings import Settings
from api.wiring.settings_checks import cookie_problem
from api.wiring.siblings import Alone, Siblings
from api.wiring.tracing import tracer
from api.wiring.upgrade import Finisher
from api.wiring.workers import prepared_core, workers_of
from domain.client.handlers import ClientHandlers
from domain.client.names import is_reserved
from domain.client.roles import Role
from domain.kernel.encryption import IngestKeys
from domain.kernel.errors import Conflict, DomainError
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Invocation
from projections.client.changes import ClientChanges
from projections.kernel.background_task import start_forever
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED
from projections.log.idempotency import IdempotencyRecords
from projections.publishing_point.own_points import OwnPoints
from projections.publishing_point.points import ChannelPointsReader
from projections.record.queries import RecordQueries
from workers.adapters.free_space import FreeSpace
from workers.adapters.keyfiles import first_secret_file
from workers.adapters.outbound_http import GuardedClient
from workers.kernel.fair_places import FairPlaces, PlacesInUse
from workers.kernel.point_tokens import PointNames
from workers.kernel.quiet import QuietMode
from workers.origin.live_origin import LiveOrigin
from workers.ports.media import MediaSource
from workers.wiring import Workers

_log = logging.getLogger(__name__)
_WRITE_USE_EVERY = 10.0
_SWEEP_EVERY = 3600.0
_TIDY_EVERY = 60.0
_OTHER_DESCRIPTORS = 256


class Product:
    """The wired product, which the command line starts and stops."""

    def __init__(
        self,
        core: Core,
        app: Application,
        *,
        services: Container,
        connections: Connections,
        workers: Workers,
        request_log: RequestLog,
        settings: Settings,
        origin: LiveOrigin | None,
        finisher: Finisher,
    ) -> None:
        self.core = core
        self.app = app
        self.connections = connections
        self._services = services
        self._workers = workers
        self._usage = services.get(UsageRecorder)
        self._outbound = services.get(GuardedClient)
        self._quiet = services.get(QuietMode)
        self._request_log = request_log
        self._settings = settings
        self._origin = origin
        self._finisher = finisher
        self._started = AsyncExitStack()

    async def start(self) -> None:
        """Start the parts in order. `stop` stops the started parts in reverse order, also if this fails half-way."""
        self._started.callback(self._request_log.flush)
        self._started.push_async_callback(self.core.stop)
        await self.core.start()
        space = self._services.get(FreeSpace)
        self._started.push_async_callback(space.stop)
        await space.start()
        self._started.push_async_callback(self._write_last_use)
        await self._first_admin()
        await self._warn_of_names()
        if problem := cookie_problem(host=self._settings.host, public_url=self._settings.public_url):
            _log.warning("%s", problem)
        if self._settings.quiet:
            await order_quiet(self.core, "the product was started with --quiet", invocation=Invocation.by("system"))
        self._started.push_async_callback(self._usage.stop)
        await self._usage.start()
        self._started.push_async_callback(self._outbound.close)
        self._started.push_async_callback(self._workers.stop)
        await self._workers.start()
        self._started.push_async_callback(self._finisher.stop)
        await self._finisher.start()
        self._repeat(self.core.directory.store_usage, _WRITE_USE_EVERY, what="key use")
        self._repeat(self._services.get(Overview).sample, SAMPLE_EVERY, what="samples of the health")
        self._repeat(self._services.get(IdempotencyRecords).sweep, _SWEEP_EVERY, what="idempotency keys sweep")
        if self._origin is not None:
            self._repeat(self._origin.tidy, _TIDY_EVERY, what="removal of recordings")

    async def start_answering(self) -> None:
        """Start only the parts that answers need, for a command that calls the API in its own process. The overview of the
        installation does not count this process."""
        self._services.get(Overview).without = (gethostname(), os.getpid())
        self._started.push_async_callback(self.core.stop)
        await self.core.start()
        await self._quiet.read(self._services.get(RecordQueries))
        self._started.push_async_callback(self._outbound.close)

    def drain(self) -> None:
        self.app.drain()

    async def stop(self) -> None:
        await self._started.aclose()

    def _repeat(self, task: Callable[[], Awaitable[Any]], seconds: float, *, what: str) -> None:
        """Repeat the task until `stop`."""

        async def turn() -> None:
            await asyncio.sleep(seconds)
            await task()

        running = start_forever(turn, what=what)

        async def stop() -> None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        self._started.push_async_callback(stop)

    async def _write_last_use(self) -> None:
        with suppress(DomainError):
            await self.core.directory.store_usage()

    def summary(self) -> Sequence[tuple[str, str]]:
        working = ", ".join(self._workers.names) or "none in this process; medialedger workers runs them"
        lines = [("admin key", _admin_key_place(self._settings)), ("workers", working)]
        return [*lines, ("quiet", "yes: nothing leaves the installation; medialedger quiet off")] if self._quiet.on else lines

    async def _warn_of_names(self) -> None:
        """Log a warning about clients of earlier builds whose names are reserved now; they keep them."""
        for client in await self.core.directory.all():
            if is_reserved(client.name):
                _log.warning(
                    "the client %s has a name that the product uses itself: actorKind in the audit distinguishes the two",
                    client.name,
                )

    async def _first_admin(self) -> None:
        """Add the client `admin` at the first start, when no client may add clients."""
        if any("admin" in existing.roles for existing in await self.core.directory.all()):
            return
        place = admin_key_file(self._settings)
        configured = self._settings.admin_api_key
        key = configured.get_secret_value() if configured is not None else first_secret_file(place, new_api_key().text)
        clients = self._services.get(ClientHandlers)
        with suppress(Conflict):  # another process was first
            await clients.register("admin", [Role.ADMIN], key=new_api_key(key), invocation=Invocation.by("system"))
        self.core.directory.invalidate()
        if self._settings.admin_api_key is None and await self.core.directory.authenticate(key) is None:
            place.unlink(missing_ok=True)  # another home created the client, and its file holds the valid key


def _places(provided: Mapping[Any, Any], origin: LiveOrigin | None) -> Mapping[str, FairPlaces]:
    places = {"media": provided[PublishedFiles].readers.places}
    if origin is not None:
        segments = provided[OriginAccess].readers.places
        places |= {"segments": segments, "uploads": origin.ingest.uploads, "playlist_bytes": origin.ingest.playlists}
    return places


def _origin(container: Container, settings: Settings) -> LiveOrigin | None:
    """Return the built-in origin; None if this process has none."""
    if not settings.origin:
        return None
    points = OwnPoints(container[Database], container[ChannelPointsReader], container[PointNames], hours=settings.origin_hours)
    return live_origin(settings, container[IngestKeys], directory=points)


def _callers(core: Core, settings: Settings, *, only: Caller | None) -> Authenticate:
    if only is None:
        return partial(authenticate, core.directory, shells=ShellKeys(settings.home))

    async def always(_: str) -> Caller:
        return only

    return always


def admin_key_file(settings: Settings) -> Path:
    return settings.home / "admin-api-key"


def _admin_key_place(settings: Settings) -> str:
    if settings.admin_api_key is not None:
        return "the value of MEDIALEDGER_ADMIN_API_KEY at the first start"
    place = admin_key_file(settings)
    return str(place) if place.exists() else "created earlier; for a new one: medialedger client rotate admin"


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the configured limits, reduced so that some of the process's descriptors remain for the database and files."""
    most = settings.connections
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors != resource.RLIM_INFINITY:
        most = min(most, max(descriptors - _OTHER_DESCRIPTORS, descriptors // 4))
    if most < settings.connections:
        _log.warning(
            "MEDIALEDGER_CONNECTIONS is %d, but the process may have only %d open files: at most %d connections are accepted; "
            "raise "
            "the hard limit",
            *(settings.connections, descriptors, most),
        )
    return ConnectionLimits(connections=most, per_address=min(settings.connections_per_address, most))


def hosts(settings: Settings) -> Hosts:
    """Return the accepted host names. Without a public address every name is accepted if the API listens for other machines,
    because its name is not configured."""
    if settings.public_url is not None:
        return Hosts(frozenset({host_name(settings.public_url)}))
    return Hosts(frozenset() if _is_loopback(settings.host) else None)


def cross_origin(settings: Settings) -> CrossOrigin | None:
    """Return the origins whose pages may call the API. Their requests never include cookies of the product."""
    origins = settings.cors_origins
    if not origins:
        return None
    return CrossOrigin(None if "*" in origins else frozenset(origin.encode("ascii") for origin in origins))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def build(
    settings: Settings,
    database: str,
    *,
    owner: str | None = None,
    roles: Sequence[str] = (),
    siblings: Siblings | None = None,
    changes: ClientChanges | None = None,
    caller: Caller | None = None,
) -> Product:
    """Return the product, not yet started, on a database that answers. `roles` are the worker roles of this process. `siblings` and
    `changes` connect it with the other processes. With `caller`, every request has this caller, whatever its key. Raise
    `StartError` for a problem that a person can correct."""
    processes = siblings.processes if siblings is not None else 1
    core = await prepared_core(
        database,
        settings.master_key_file,
        owner=owner,
        changes=changes,
        processes=processes,
        pools=settings.database_limits,
        limits=settings.log_limits,
        tracer=tracer(settings.tracing) if caller is None else UNTRACED,
    )
    stream: TextIO = sys.stderr if caller is None else StringIO()  # a command reports its own actions
    request_log = RequestLog(stream, clock=core.clock, text=as_text(settings.log_format, sys.stderr))
    container = services_of(core, settings)
    container.bind(PROVIDERS)
    callers = _callers(core, settings, only=caller)
    container.give(Authenticate, callers)
    container.give(Siblings, siblings or Alone(core.registry, buckets=TokenBuckets(settings.speke_rate)))
    for kind in (QuietMode, GuardedClient, MediaFiles):  # one of each in the process, for the API and its workers
        container.give(kind, container[kind])
    container.give(ServedMedia, ServedMedia(container[MediaSource] if settings.media_serve else None))
    origin = _origin(container, settings)
    container.give(LiveOrigin, origin)
    provided, workers = services_by_type(container), workers_of(container, roles)
    app = build_application(
        ROUTES,
        provided,
        authenticate=callers,
        idempotency=container[IdempotencyRecords],
        fingerprint=core.ring.marks,
        registry=core.registry,
        request_log=request_log,
        version=product_version(),
        public_url=settings.public_url or "",
        cross_origin=cross_origin(settings),
        tracer=core.tracer,
    )
    connections = Connections(
        connection_limits(settings), hosts=hosts(settings), proxies=Proxies(settings.trusted_proxies), prefix="medialedger_http"
    )
    core.registry.register(connections)
    core.registry.register(PlacesInUse(_places(provided, origin), prefix="medialedger"))
    return Product(
        core,
        app,
        services=container,
        connections=connections,
        workers=workers,
        request_log=request_log,
        settings=settings,
        origin=origin,
        finisher=Finisher(core.database, owner=owner),
    )
