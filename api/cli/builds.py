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
    Column("master keys", lambda one: ", ".join(one["masterKeys"] or ()), wide=True),
)


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as found:
        await prepare(found.url, owner=found.owner)
        async with Database.of_owner(found.url, size=1) as database:
            least, reason = await limits(database)
            processes = [
                {
                    "build": one.build,
                    "host": one.host,
                    "pid": one.pid,
                    "startedAt": iso(one.started_at),
                    "seenSecondsAgo": round(one.seen_ago),
                    "masterKeys": None if one.master_keys is None else list(one.master_keys),
                }
                for one in await living(database)
            ]
            if args.form in (TABLE, WIDE):
                print(f"this build  {BUILD}")
                print(f"oldest that may start  {least}  ({printable(reason)})")
            print_list(processes, _COLUMNS, form=args.form, none="no processes")
    return 0
