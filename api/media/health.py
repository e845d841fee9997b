"""Health and version of the service: docs/reference/api/health.md."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter
from pydantic import Field

from api.http.errors import Failure
from api.http.response import Response
from api.http.routing import Service
from api.http.surface import problem
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from api.kernel.version import four_part, product_version
from api.kernel.wire import Wire
from domain.kernel.errors import Unavailable
from projections.consumers.queries import ConsumerQueries
from projections.kernel.database.database import Database
from projections.log.reader import head
from workers.ports.media import Transcoder

routes = APIRouter(prefix="/api/health", tags=["Health"], route_class=MediaRoute)

T = TypeVar("T")
_OK = "ok"
_NEEDED = ("api", "transcoding", "database")
_NEVER_STORED = ("cache-control", "no-store")
_RETRY = ("retry-after", "5")


class ServiceHealth(Wire):
    """The state of each part: `ok`, or a short description of the fault."""

    api: str = Field(description="ok.")
    transcoding: str = Field(description="ok, or the fault of the transcoder.")
    database: str = Field(description="ok, or the fault of the database.")
    consumers: str = Field(
        description="ok, or the consumers that read the log because the broker is unavailable. This alone does not cause a 503."
    )


class ServiceVersion(Wire):
    """The version of the service."""

    client: str = Field(description="The name of the calling client.")
    machine_name: str = Field(description="The host that the service runs on.")
    assembly_version: str = Field(description="The version of the product in four parts, such as 0.1.0.0.")
    file_version: str = Field(description="The version of the product in four parts, such as 0.1.0.0.")
    product_version: str = Field(description="The version of the product in four parts, such as 0.1.0.0.")


class Health:
    """Checks the dependencies of the service. `machine` is the host that it runs on."""

    def __init__(self, database: Database, transcoder: Transcoder, *, machine: str, seconds: float = 2.0) -> None:
        self.machine = machine
        self._database = database
        self._consumers = ConsumerQueries(database)
        self._transcoder = transcoder
        self._seconds = seconds

    async def report(self) -> dict[str, str]:
        checks = self._transcoder.check(), self._asked(head(self._database)), self._asked(self._consumers.reading_log())
        transcoding, (_, database), (reading_log, unknown) = await asyncio.gather(*checks)
        consumers = f"{', '.join(reading_log)}: reading the log because the broker is unavailable" if reading_log else unknown
        return {"api": _OK, "transcoding": transcoding or _OK, "database": database or _OK, "consumers": consumers or _OK}

    async def _asked(self, question: Awaitable[T]) -> tuple[T | None, str | None]:
        """Return the answer of the database and None, or None and the fault of the database."""
        try:
            async with asyncio.timeout(self._seconds):
                return await question, None
        except TimeoutError:
            return None, "the database does not answer"
        except Unavailable as fault:
            return None, fault.what


@routes.get("/", dependencies=[READ], response_model=ServiceHealth)
async def get_service_health(request: Request, health: Service[Health]) -> Response:
    """The health of the API, the transcoder and the database; 503, a problem with the same members, if one of them fails.

    Also names the consumers that read the log because the broker is unavailable.
    """
    report = await health.report()
    if all(report[part] == _OK for part in _NEEDED):
        return Response(report, headers=(_NEVER_STORED,))
    failure = Failure(503, "The service is not operational.", "unhealthy", headers=(_NEVER_STORED, _RETRY))
    return problem(failure, request, **report)


@routes.get("/version", dependencies=[READ], response_model=ServiceVersion)
async def get_service_version(request: Request, health: Service[Health]) -> Response:
    """The calling client, the host of the service, and its version in four parts."""
    version = four_part(product_version())
    shown = ServiceVersion.model_construct(
        client=request.caller.name,
        machine_name=health.machine,
        assembly_version=version,
        file_version=version,
        product_version=version,
    )
    return Response(shown)
