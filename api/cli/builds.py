"""`medialedger builds`: the processes on the database with the numbers of their builds."""

from __future__ import annotations

from argparse import Namespace

from api.cli.database import open_database
from api.cli.printable import printable
from api.wiring.core import prepare
from api.wiring.settings import Settings
from projections.kernel.builds import BUILD, limits, living
from projections.kernel.database import Database


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as found:
        await prepare(found.url, owner=found.owner)
        async with Database.of_owner(found.url, size=1) as database:
            least, reason = await limits(database)
            print(f"this build  {BUILD}")
            print(f"oldest that may start  {least}  ({reason})")
            for build, host, pid, started, seen in await living(database):
                print(
                    f"build {build}  process {pid} on {printable(host)}  since {started:%Y-%m-%d %H:%M:%S}Z  seen {seen:.0f} s ago"
                )
    return 0
