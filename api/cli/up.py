"""`medialedger up`: everything on one machine."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from api.cli.database import kept
from api.cli.home import locked, prepare
from api.cli.serving import serve
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.product import build
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    prepare(settings.home)
    with locked(settings.home):
        return await serve(settings, database=kept, build=partial(build, roles=tuple(WORKER_ROLES)))
