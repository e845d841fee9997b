"""`medialedger api`: the API without workers, on a running database. Any number of processes may run."""

from __future__ import annotations

from argparse import Namespace

from api.cli.database import attach_database
from api.cli.home import create_home
from api.cli.serving import serve
from api.wiring.product import build
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    create_home(settings.home)
    return await serve(settings, database=attach_database, build=build)
