"""`medialedger api`: only the surfaces, on a database that is already there. Any number of these may run beside each other."""

from __future__ import annotations

from argparse import Namespace

from api.cli.database import attached
from api.cli.home import prepare
from api.cli.serving import serve
from api.wiring.product import build
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    prepare(settings.home)
    return await serve(settings, database=attached, build=build)
