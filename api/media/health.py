"""Whether the service can do its work, and which version it is: document 2, "Health"."""

from __future__ import annotations

import asyncio

from api.kernel.answer import Answer
from api.kernel.auth import READ
from api.kernel.call import Call
from api.kernel.errors import Failure
from api.kernel.routes import Routes
from api.kernel.surface import problem
from api.kernel.wire import Wire
from api.version import four_part, product_version
from domain.kernel.errors import Unavailable
from projections.kernel.database import Database
from projections.log.tail import head
from workers.ports import Transcoder

routes = Routes("/health", tag="Health")

_OK = "ok"
_NEVER_STORED = ("cache-control", "no-store")
_RETRY = ("retry-after", "5")


class ServiceHealthWire(Wire):
    """`ok`, or in a few words what is wrong."""

    api: str
    transcoding: str
    database: str


class VersionWire(Wire):
    client: str
    machine_name: str
    assembly_version: str
    file_version: str
    product_version: str


class Health:
    """Asks what the service depends on. `machine` is where it runs."""

    def __init__(self, database: Database, transcoder: Transcoder, *, machine: str, seconds: float = 2.0) -> None:
        self.machine = machine
        self._database = database
        self._transcoder = transcoder
        self._seconds = seconds

    async def report(self) -> dict[str, str]:
        transcoding, database = await asyncio.gather(self._transcoder.check(), self._ask_database())
        return {"api": _OK, "transcoding": transcoding or _OK, "database": database or _OK}

    async def _ask_database(self) -> str | None:
        try:
            async with asyncio.timeout(self._seconds):
                await head(self._database)
        except TimeoutError:
            return "the database does not answer"
        except Unavailable as fault:
            return fault.what
        return None


@routes.get("/", READ, answers=ServiceHealthWire)
async def service_health(call: Call, health: Health) -> Answer:
    """Whether the API, the transcoder and the database work; 503, a problem with the same members, when one does not."""
    report = await health.report()
    if all(said == _OK for said in report.values()):
        return Answer(200, report, headers=(_NEVER_STORED,))
    wrong = problem(Failure(503, "The service cannot do its work.", "unhealthy", headers=(_NEVER_STORED, _RETRY)), call)
    wrong.body |= report
    return wrong


@routes.get("/version", READ, answers=VersionWire)
async def service_version(call: Call, health: Health) -> Answer:
    """Who asks, where the service runs, and its version in four parts."""
    version = four_part(product_version())
    shown = {
        "client": call.caller.name,
        "machineName": health.machine,
        "assemblyVersion": version,
        "fileVersion": version,
        "productVersion": version,
    }
    return Answer(200, shown)
