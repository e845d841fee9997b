"""`medialedger builds`: the processes on the database with the numbers of their builds."""

from __future__ import annotations

from argparse import Namespace

from api.cli.database import open_database
from api.cli.output import TABLE, WIDE, Column, Kind, field, print_list
from api.cli.printable import printable
from api.wiring.core import prepare
from api.wiring.settings import Settings
from domain.kernel.clock import iso
from projections.kernel.builds import BUILD, limits, living
from projections.kernel.database import Database

_COLUMNS = (
    Column("build", field("build"), Kind.NUMBER),
    Column("host", field("host")),
    Column("process", field("pid"), Kind.NUMBER),
    Column("since", field("startedAt"), Kind.TIME),
    Column("seen", lambda one: f"{one['seenSecondsAgo']} s ago"),
)


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as found:
        await prepare(found.url, owner=found.owner)
        async with Database.of_owner(found.url, size=1) as database:
            least, reason = await limits(database)
            processes = [
                {"build": build, "host": host, "pid": pid, "startedAt": iso(started), "seenSecondsAgo": round(seen)}
                for build, host, pid, started, seen in await living(database)
            ]
            if args.form in (TABLE, WIDE):
                print(f"this build  {BUILD}")
                print(f"oldest that may start  {least}  ({printable(reason)})")
            print_list(processes, _COLUMNS, form=args.form, none="no processes")
    return 0
