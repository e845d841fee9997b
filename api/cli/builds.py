"""`medialedger builds`: the processes on the database with the numbers of their builds."""

from __future__ import annotations

from argparse import Namespace

from api.cli.output import TABLE, WIDE, Column, Kind, field, print_list
from api.cli.printable import printable
from api.cli.run.database import open_database
from api.wiring.core import prepare
from api.wiring.settings import Settings
from domain.kernel.clock import iso
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import BUILD, limits, living

_COLUMNS = (
    Column("build", field("build"), Kind.NUMBER),
    Column("host", field("host")),
    Column("process", field("pid"), Kind.NUMBER),
    Column("since", field("startedAt"), Kind.TIME),
    Column("last seen", lambda process: f"{process['seenSecondsAgo']} s ago"),
    Column("master keys", lambda process: ", ".join(process["masterKeys"] or ()), wide=True),
)


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as location:
        await prepare(location.url, owner=location.owner)
        async with Database.of_owner(location.url, size=1) as database:
            least, reason = await limits(database)
            processes = [
                {
                    "build": process.build,
                    "host": process.host,
                    "pid": process.pid,
                    "startedAt": iso(process.started_at),
                    "seenSecondsAgo": round(process.seen_ago),
                    "masterKeys": None if process.master_keys is None else list(process.master_keys),
                }
                for process in await living(database)
            ]
            if args.form in (TABLE, WIDE):
                print(f"this build  {BUILD}")
                print(f"oldest that may start  {least}  ({printable(reason)})")
            print_list(processes, _COLUMNS, form=args.form, none="no processes")
    return 0
