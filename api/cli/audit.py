"""`medialedger audit`: the history of one thing, and whether the log is whole."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from functools import partial

from api.cli.database import at_hand
from api.cli.opened import opened
from api.cli.progress import tell_events
from api.http.response import encode
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from projections.audit.queries import AuditQueries, Entry, EntryFilter
from projections.audit.verify import verify


async def run(args: Namespace, settings: Settings) -> int:
    return await (_show(args, settings) if args.action == "show" else _verify(settings))


async def _show(args: Namespace, settings: Settings) -> int:
    async with opened(settings) as wired:
        audit = AuditQueries(wired.database, wired.streams, wired.catalogue)
        if args.aggregate is not None and args.aggregate not in wired.catalogue.aggregates:
            raise StartError(f"there is no aggregate {args.aggregate}; known are {', '.join(wired.catalogue.aggregates)}")
        wanted = EntryFilter(aggregate=args.aggregate, id=args.id, limit=args.limit)
        entries = list(reversed((await audit.entries(wanted))[: args.limit]))
    if not entries:
        raise StartError("there is nothing in the log about that")
    for entry in entries:
        print(_line(entry))
    return 0


def _line(entry: Entry) -> str:
    head = f"{entry.position:>8}  {iso(entry.recorded_at)}  {entry.aggregate} {entry.id} v{entry.version}  {entry.type}"
    return f"{head}  by {entry.actor}  in {entry.transaction_id}\n          {encode(entry.data).decode()}"


async def _verify(settings: Settings) -> int:
    async with at_hand(settings) as found:
        verdict = await asyncio.to_thread(partial(verify, found.url, progress=tell_events))
    if verdict.valid:
        print(f"the log is whole: {verdict.checked} events, each in its place")
        return 0
    print(
        f"the log does not fit at position {verdict.first_bad_position}: {verdict.reason} ({verdict.checked} events before it fit)"
    )
    return 1
