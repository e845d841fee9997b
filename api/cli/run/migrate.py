"""`medialedger migrate`: updates the schema without starting the product, and finishes an upgrade."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import datetime

import psycopg

from api.cli.arguments import NOT_UP_TO_DATE
from api.cli.run.database import attach_database, open_database
from api.cli.run.running import set_up_log
from api.wiring.catalogue import migrations
from api.wiring.core import finish, prepare
from api.wiring.settings import Settings
from projections.kernel.database.database import APP_ROLE
from projections.kernel.schema.builds import BUILD
from workers.kernel.parent import end_with

_NICE = 10


async def run(args: Namespace, settings: Settings) -> int:
    if args.parent is not None:
        return await _finish_for(args.parent, settings)
    if args.status:
        return await _status(settings)
    async with open_database(settings, make=True) as database:
        role = await prepare(database.url, owner=database.owner)
        print("the schema is up to date")
        if role is None:
            print(f"note: this database user may not create the role {APP_ROLE}, so only triggers keep the log append-only")
        if args.finish:
            await finish(database.owner, role)
            print("the upgrade is finished")
    return 0


async def _status(settings: Settings) -> int:
    async with open_database(settings) as database, await psycopg.AsyncConnection.connect(database.owner) as connection:
        applied: dict[str, datetime] = dict(await (await connection.execute("SELECT name, applied_at FROM migrations")).fetchall())
        row = await (await connection.execute("SELECT build, newest, reason FROM min_build")).fetchone()
    needed = [step.name for step in migrations()]
    print(f"this build  {BUILD}")
    if row is not None:
        print(f"oldest that may start  {row[0]}  ({row[2]})\nnewest that has started  {row[1]}")
    for name in needed:
        print(f"{name}  applied {applied[name]:%Y-%m-%d %H:%M:%S}Z" if name in applied else f"{name}  missing")
    for name in sorted(applied.keys() - set(needed)):
        print(f"{name}  applied {applied[name]:%Y-%m-%d %H:%M:%S}Z by a newer build")
    return 0 if applied.keys() >= set(needed) else NOT_UP_TO_DATE


async def _finish_for(parent: int, settings: Settings) -> int:
    """Finish the upgrade on behalf of a serving process. That process has priority, and this one ends with it."""
    end_with(parent)
    os.nice(_NICE)
    set_up_log(settings)
    async with attach_database(settings) as database:
        await finish(database.owner, await prepare(database.url, owner=database.owner))
    return 0
