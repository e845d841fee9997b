"""`medialedger api`: the API without workers, on a running database. Any number of processes may run."""

from __future__ import annotations

from api.cli.run.database import attach_database
from api.cli.run.home import create_home
from api.wiring.settings import Settings


async def run(settings: Settings) -> int:
    """Serve in this process, or in several processes if the settings ask for them."""
    create_home(settings.home)
    if settings.api_processes > 1:
        from api.cli.run.supervisor import supervise

        return await supervise(settings, database=attach_database, api=settings.api_processes, workers=0, roles=())
    from api.cli.run.serving import serve
    from api.wiring.product import build

    return await serve(settings, database=attach_database, build=build)
