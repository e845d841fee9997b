"""Probes, metrics and API descriptions for the operation of the product, without an API key: docs/reference/api/operations.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import Field

from api.http.response import Response
from api.http.routing import OPEN, Service, rules
from api.kernel.request import Request
from api.kernel.surfaces import OperationsRoute
from api.kernel.wire import Wire
from api.operations.asyncapi.document import AsyncApi
from api.operations.backlog import Backlog
from api.operations.metrics import DatabaseMetrics, Snapshot, exposition
from domain.kernel.errors import Unavailable
from projections.kernel.database.database import Database, Pool
from projections.log.append import Appender
from projections.log.reader import head
from projections.vault.master_keys import VaultState

liveness = APIRouter(tags=["Operations"], route_class=OperationsRoute)
"""Routes of every process, including processes without a database."""
own_metrics = APIRouter(tags=["Operations"], route_class=OperationsRoute)
"""Routes of processes without the API."""
routes = APIRouter(tags=["Operations"], route_class=OperationsRoute)

_NEVER_STORED = (("cache-control", "no-store"),)
_LONGEST_WAIT = 2.0
"""Seconds that a change may wait to be written before the product counts as not ready."""


class Liveness(Wire):
    """The state of a process that answers."""

    status: str = Field(description="ok.")


class Readiness(Liveness):
    """The state of a product that can serve requests."""

    log_head: int = Field(description="The last position of the event log.", examples=[1200])
    unreadable_secrets: int = Field(description="Secrets encrypted with a master key that the product no longer has.", examples=[0])


@liveness.get("/livez", dependencies=[OPEN], response_model=Liveness)
async def check_liveness(request: Request) -> Response:
    """Confirm that the process answers."""
    return Response(Liveness.model_construct(status="ok"), headers=_NEVER_STORED)


@dataclass(frozen=True)
class Completeness:
    """The readiness of the product: all its processes have been ready once. A process that is started again later does not change
    it, because the others answer requests meanwhile."""

    reached: Callable[[], bool]


@routes.get("/readyz", dependencies=[OPEN], response_model=Readiness)
@rules(errors={503: "The product is not ready; see Retry-After"})
async def check_readiness(
    request: Request,
    database: Service[Database],
    appender: Service[Appender],
    vault: Service[VaultState],
    processes: Service[Completeness],
) -> Response:
    """Confirm that all processes run, the database answers, changes are written, and the master key fits; 503 otherwise."""
    if not processes.reached():
        raise Unavailable("other processes of the product are starting")
    if appender.oldest > _LONGEST_WAIT:
        raise Unavailable("changes wait too long to be written")
    if not vault.fit:
        raise Unavailable("this process does not hold the master key that the database uses")
    shown = Readiness.model_construct(status="ok", log_head=await head(database), unreadable_secrets=await vault.unreadable())
    return Response(shown, headers=_NEVER_STORED)


class LogHead:
    """The last position of the log as a metric. It is read at each scrape because other processes append too."""

    def __init__(self, database: Pool, registry: CollectorRegistry) -> None:
        self._database = database
        self._gauge = Gauge("medialedger_log_head_position", "Position of the last event in the log", registry=registry)

    async def refresh(self) -> None:
        with suppress(Unavailable):
            self._gauge.set(await head(self._database))


@dataclass(frozen=True)
class AllMetrics:
    """The combined metrics of all processes."""

    read: Callable[[], Awaitable[Snapshot]]


@routes.get("/metrics", dependencies=[OPEN])
@rules(media_type="text/plain")
async def get_metrics(
    request: Request,
    metrics: Service[AllMetrics],
    log_head: Service[LogHead],
    backlog: Service[Backlog],
    shared: Service[DatabaseMetrics],
) -> Response:
    """Prometheus metrics of all processes that serve this port."""
    await log_head.refresh()
    await backlog.refresh()
    shown = exposition(await metrics.read(), shared)
    return Response(shown, media_type=CONTENT_TYPE_LATEST, headers=_NEVER_STORED)


@own_metrics.get("/metrics", dependencies=[OPEN])
@rules(media_type="text/plain")
async def get_own_metrics(request: Request, metrics: Service[AllMetrics]) -> Response:
    """Prometheus metrics of these processes, without the values that every API reads from the database."""
    return Response(exposition(await metrics.read()), media_type=CONTENT_TYPE_LATEST, headers=_NEVER_STORED)


@routes.get("/asyncapi.json", dependencies=[OPEN])
async def get_asyncapi_document(request: Request, document: Service[AsyncApi]) -> Response:
    """The AsyncAPI 3.0 document: the event log in Kafka and the notifications of webhooks."""
    return (await document.rendered()).response()
