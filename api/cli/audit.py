"""`medialedger audit`: the history of an aggregate, and the check of the log's hash chain."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from functools import partial

from api.cli.database import open_database
from api.cli.open_core import open_core
from api.cli.progress import show_event_count
from api.http.response import encode
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from projections.audit.queries import AuditQueries, Entry, EntryFilter
from projections.audit.verify import verify


async def run(args: Namespace, settings: Settings) -> int:
    return await (_show(args, settings) if args.action == "show" else _verify(settings))


async def _show(args: Namespace, settings: Settings) -> int:
    async with open_core(settings) as wired:
        audit = AuditQueries(wired.database.lists, wired.streams, wired.catalogue)
        if args.aggregate is not None and args.aggregate not in wired.catalogue.aggregates:
            raise StartError(f"there is no aggregate {args.aggregate}; known are {', '.join(wired.catalogue.aggregates)}")
        query = EntryFilter(aggregate=args.aggregate, id=args.id, limit=args.limit)
        entries = list(reversed((await audit.entries(query)).entries))
    if not entries:
        raise StartError("the log has no such events")
    for entry in entries:
        print(_line(entry))
    return 0


def _line(entry: Entry) -> str:
    head = f"{entry.position:>8}  {iso(entry.recorded_at)}  {entry.aggregate} {entry.id} v{entry.version}  {entry.type}"
    return f"{head}  by {entry.actor}  in {entry.transaction_id}\n          {encode(entry.data).decode()}"


async def _verify(settings: Settings) -> int:
    async with open_database(settings) as found:
        result = await asyncio.to_thread(partial(verify, found.url, progress=show_event_count))
    if result.valid:
        print(f"the log is whole: {result.checked} events, each in its place")
        return 0
    print(f"the log does not fit at position {result.first_bad_position}: {result.reason} ({result.checked} events before it fit)")
    return 1
