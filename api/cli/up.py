"""`medialedger up`: everything on one machine."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from api.cli.database import kept
from api.cli.home import locked, prepare
from api.cli.serving import serve
from api.settings import Settings
from api.wiring import build
from workers.wiring import ROLES


async def run(args: Namespace, settings: Settings) -> int:
    prepare(settings.home)
    with locked(settings.home):
        return await serve(settings, database=kept, build=partial(build, roles=tuple(ROLES)))
