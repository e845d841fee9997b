"""`medialedger projections`: lists the views, and rebuilds one. The append writes all views, so no process maintains them."""

from __future__ import annotations

from argparse import Namespace

from api.cli.output import Column, Kind, field, print_list, show_event_count
from api.cli.run.database import check_owner, open_database
from api.wiring.catalogue import catalogue, views
from api.wiring.core import prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import Database
from projections.log.reader import head
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams


async def run(args: Namespace, settings: Settings) -> int:
    async with open_database(settings) as location:
        if args.action != "list":
            check_owner(location)
        role = await prepare(location.url, owner=location.owner)
        async with Database.of_owner(location.owner, size=4) as database:
            if args.action == "list":
                await _list(database, form=args.form)
            else:
                await _rebuild(database, args.name, role=role)
    return 0


async def _list(database: Database, *, form: str) -> None:
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
        Column("view", field("name")),
        Column("version", field("version"), Kind.NUMBER),
        Column(
            "next version",
            lambda document: document["newVersion"] if document["newVersion"] != document["version"] else None,
            Kind.NUMBER,
        ),
        Column("at position", field("head"), Kind.NUMBER),
        Column("built", field("builtAt"), Kind.TIME),
        Column("kinds", field("kinds"), Kind.LONG),
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
