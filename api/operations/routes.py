"""What whoever runs the product asks of it: is it alive, is it ready, how is it doing. Without a key."""

from __future__ import annotations

from contextlib import suppress

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from api.kernel.answer import Answer
from api.kernel.auth import OPEN
from api.kernel.call import Call
from api.kernel.routes import Routes
from api.kernel.surface import OPERATIONS
from api.kernel.wire import Wire
from api.operations.asyncapi.document import AsyncApi
from api.operations.backlog import Backlog
from domain.kernel.errors import Unavailable
from projections.kernel.database import Database
from projections.log.append import Appender
from projections.log.tail import head

routes = Routes("", surface=OPERATIONS, tag="Operations")

_NEVER_STORED = (("cache-control", "no-store"),)
_TOO_OLD = 2.0


class HealthWire(Wire):
    status: str


class ReadinessWire(HealthWire):
    log_head: int


@routes.get("/livez", OPEN, answers=HealthWire)
async def livez(call: Call) -> Answer:
    """The process answers."""
    return Answer(200, {"status": "ok"}, headers=_NEVER_STORED)


@routes.get("/readyz", OPEN, answers=ReadinessWire)
async def readyz(call: Call, database: Database, appender: Appender) -> Answer:
    """The database answers and changes are written without delay; 503 otherwise."""
    if appender.oldest > _TOO_OLD:
        raise Unavailable("changes wait too long to be written")
    return Answer(200, {"status": "ok", "logHead": await head(database)}, headers=_NEVER_STORED)


class LogHead:
    """The log's head as a metric: asked for when somebody looks, since other processes append too."""

    def __init__(self, database: Database, registry: CollectorRegistry) -> None:
        self._database = database
        self._gauge = Gauge("medialedger_log_head_position", "Position of the last event in the log", registry=registry)

    async def look(self) -> None:
        with suppress(Unavailable):
            self._gauge.set(await head(self._database))


@routes.get("/metrics", OPEN, media_type="text/plain")
async def metrics(call: Call, registry: CollectorRegistry, log_head: LogHead, backlog: Backlog) -> Answer:
    """Prometheus metrics."""
    await log_head.look()
    await backlog.look()
    return Answer(200, generate_latest(registry), media_type=CONTENT_TYPE_LATEST, headers=_NEVER_STORED)


@routes.get("/asyncapi.json", OPEN)
async def asyncapi_document(call: Call, document: AsyncApi) -> Answer:
    """AsyncAPI 3.0: the event log in Kafka, and the webhooks' notifications."""
    return Answer(body=await document.json())
