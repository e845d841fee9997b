"""`medialedger settings`: the settings with their values, origins and meanings."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from api.cli.output import Column, Kind, field, print_list
from api.wiring.settings import Settings


async def run(args: Namespace, settings: Settings) -> int:
    columns = (
        Column("name", field("name")),
        Column("value", field("value")),
        Column("from", field("origin")),
        Column("meaning", field("meaning"), Kind.LONG),
    )
    print_list(map(asdict, settings.listing()), columns, form=args.form, none="no settings")
    return 0
