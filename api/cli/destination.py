"""`medialedger destination`: adds, tries and lists the places that publications go to."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from uuid import UUID

from api.cli import shell
from api.cli.named_record import named_record
from api.cli.open_vault import open_vault
from api.cli.printable import aligned, printable
from api.cli.secret_text import secret_text
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.publishing_targets import publishing_targets, refused_targets
from api.wiring.rooms.destination import destination_handlers
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.destination.handlers import DestinationHandlers
from domain.destination.targets import Target
from domain.kernel.errors import DomainError
from domain.records.kinds.destination import Destination
from domain.records.row import RecordRow
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.syndication.trial import TargetTrials


async def run(args: Namespace, settings: Settings) -> int:
    text = await asyncio.to_thread(secret_text, args.config) if args.action == "add" else ""
    try:
        async with open_vault(settings) as (wired, vault):
            await _ACTIONS[args.action](args, text, _Opened(wired, vault, settings))
    except DomainError as refusal:
        raise StartError(str(refusal)) from None
    return 0


class _Opened:
    """What the actions work with."""

    def __init__(self, wired: Core, vault: Vault, settings: Settings) -> None:
        self.records = RecordQueries(wired.database, RECORDS)
        self.handlers: DestinationHandlers = destination_handlers(
            wired.database,
            wired.executor,
            streams=wired.streams,
            records=self.records,
            vault=vault,
            trial=TargetTrials(publishing_targets(settings), refused=refused_targets(settings)),
        )


async def _add(args: Namespace, text: str, opened: _Opened) -> None:
    values = {"name": args.name, "target": Target[args.target], "configuration_json": text}
    added = await opened.handlers.add(values, invocation=shell.invocation())
    key = added.aggregate.key
    print(f"destination {key}\nit is not active before `medialedger destination test {key}` has reached it")


async def _test(args: Namespace, text: str, opened: _Opened) -> None:
    row = await named_record(opened.records, Destination, args.destination)
    tried = await opened.handlers.activate(UUID(row.id), invocation=shell.invocation())
    if (fault := tried.result["fault"]) is not None:
        raise StartError(f"action required: {fault}")
    print(f"{printable(row.details.name)} is active: the target was reached as it is configured")


async def _list(args: Namespace, text: str, opened: _Opened) -> None:
    rows = await opened.records.all(Destination.KIND)
    if args.json:
        print(json.dumps([_document(row) for row in rows], indent=2))
    else:
        head = ("id", "name", "target", "active")
        print("\n".join(aligned([head, *map(_line, rows)])))


_ACTIONS: Final[Mapping[str, Callable[[Namespace, str, _Opened], Awaitable[None]]]] = {
    "add": _add,
    "test": _test,
    "list": _list,
}


def _line(row: RecordRow) -> tuple[str, ...]:
    return (row.id, row.details.name, row.details.target.name, "yes" if row.details.active else "no")


def _document(row: RecordRow) -> dict[str, Any]:
    details = row.details
    return {
        "id": row.id,
        "name": details.name,
        "target": int(details.target),
        "targetString": details.target.name,
        "active": details.active,
    }
