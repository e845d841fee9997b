"""`medialedger migrate`: brings the schema up to date without a start of the product."""

from __future__ import annotations

from argparse import Namespace

from api.cli.database import open_database
from api.wiring.core import prepare
from api.wiring.settings import Settings
from projections.kernel.database import APP_ROLE


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as found:
        role = await prepare(found.url)
    print("the schema is up to date")
    if role is None:
        print(f"note: this database user may not create the role {APP_ROLE}, so only triggers keep the log append-only")
    return 0
