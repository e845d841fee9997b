"""Work on the database as a whole: the migrations of its schema, its views, and the builds that run on it."""

from __future__ import annotations

import os
from datetime import datetime

import psycopg

from api.cli.command import NOT_UP_TO_DATE
from api.cli.output import TABLE, WIDE, Kind, TableColumn, field, print_list, show_event_count
from api.cli.run.database import attach_database, check_owner, open_database
from api.cli.run.runner import set_up_log
from api.cli.terminal_text import printable
from api.wiring.catalogue import catalogue, migrations, views
from api.wiring.core import finish, prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import APP_ROLE, Database
from projections.kernel.schema.builds import BUILD, limits, living
from projections.log.reader import head
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from workers.kernel.parent import end_with

_NICE = 10


async def migrate(settings: Settings, *, finish_upgrade: bool) -> None:
    async with open_database(settings, make=True) as database:
        role = await prepare(database.url, owner=database.owner)
        print("the schema is up to date")
        if role is None:
            print(f"note: this database user may not create the role {APP_ROLE}, so only triggers keep the log append-only")
        if finish_upgrade:
            await finish(database.owner, role)
            print("the upgrade is finished")


async def print_migrations(settings: Settings) -> int:
    """Print the migrations that the database has and lacks, and return the exit code."""
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


async def finish_for(settings: Settings, parent: int) -> int:
    """Finish the upgrade on behalf of a serving process. That process has priority, and this one ends with it."""
    end_with(parent)
    os.nice(_NICE)
    set_up_log(settings)
    async with attach_database(settings) as database:
        await finish(database.owner, await prepare(database.url, owner=database.owner))
    return 0


async def print_views(settings: Settings, *, form: str) -> None:
    async with open_database(settings) as location:
        await prepare(location.url, owner=location.owner)
        async with Database.of_owner(location.owner, size=4) as database:
            await _print_views(database, form=form)


async def rebuild_view(settings: Settings, name: str) -> None:
    async with open_database(settings) as location:
        check_owner(location)
        role = await prepare(location.url, owner=location.owner)
        async with Database.of_owner(location.owner, size=4) as database:
            await _rebuild(database, name, role=role)


async def _print_views(database: Database, *, form: str) -> None:
    built = {name: (version, at) for name, version, at in await database.rows("SELECT name, version, built_at FROM view_versions")}
    documents = [
        {
            "name": view.name,
            "version": built[view.name][0],
            "newVersion": view.version,
            "kinds": list(view.kinds),
            "builtAt": iso(built[view.name][1]),
            "head": await head(database),
        }
        for view in views().all
    ]
    columns = (
        TableColumn("view", field("name")),
        TableColumn("version", field("version"), Kind.NUMBER),
        TableColumn(
            "next version",
            lambda document: document["newVersion"] if document["newVersion"] != document["version"] else None,
            Kind.NUMBER,
        ),
        TableColumn("at position", field("head"), Kind.NUMBER),
        TableColumn("built", field("builtAt"), Kind.TIME),
        TableColumn("kinds", field("kinds"), Kind.LONG),
    )
    print_list(documents, columns, form=form, none="no views")


async def _rebuild(database: Database, name: str, *, role: str | None) -> None:
    views_by_name = views().by_name
    view = views_by_name.get(name) or views_by_name.get(f"{name}_view")
    if view is None:
        raise StartError(f"the view {name} does not exist; choose one of {', '.join(views_by_name)}")
    rebuilder = Rebuilder(database, Streams(database, EventMapper(catalogue())), app_role=role)
    done = await rebuilder.rebuild(view, progress=show_event_count)
    print(f"{view.name}: {done.rows} rows from {done.events} events, at position {done.position}")


_COLUMNS = (
    TableColumn("build", field("build"), Kind.NUMBER),
    TableColumn("host", field("host")),
    TableColumn("process", field("pid"), Kind.NUMBER),
    TableColumn("since", field("startedAt"), Kind.TIME),
    TableColumn("last seen", lambda process: f"{process['seenSecondsAgo']} s ago"),
    TableColumn("master keys", lambda process: ", ".join(process["masterKeys"] or ()), wide=True),
)


async def print_builds(settings: Settings, *, form: str) -> None:
    """Print the processes on the database with the numbers of their builds."""
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
            if form in (TABLE, WIDE):
                print(f"this build  {BUILD}")
                print(f"oldest that may start  {least}  ({printable(reason)})")
            print_list(processes, _COLUMNS, form=form, none="no processes")
