"""`medialedger consumers`: the consumers of the log with their positions, and the parked records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from api.cli.open_core import open_core
from api.cli.printable import printable, printable_lines
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from projections.consumers.parked import ParkedRecord, ParkedRecords
from projections.consumers.queries import ConsumerQueries, ConsumerStatus
from projections.kernel.database import Database


async def run(args: Namespace, settings: Settings) -> int:
    async with open_core(settings) as wired:
        known = await ConsumerQueries(wired.database).all()
        selected = _selected(known, getattr(args, "name", None))
        if args.action == "list":
            await _list(wired.database, known)
        elif args.action == "parked":
            await _parked(wired.database, selected)
        else:
            replaying = await ParkedRecords(wired.database).request_replay(args.name, stream=args.stream)
            print(f"{replaying} records will be processed again by the workers that run {args.name}")
    return 0


def _selected(known: Sequence[ConsumerStatus], name: str | None) -> Sequence[ConsumerStatus]:
    selected = [one for one in known if name in (None, one.name)]
    if name is not None and not selected:
        raise StartError(f"there is no consumer {name}; there are {', '.join(one.name for one in known) or 'none yet'}")
    return selected


async def _list(database: Database, known: Sequence[ConsumerStatus]) -> None:
    members = await ConsumerQueries(database).members()
    for one in known:
        where = f"at {one.position}, {one.lag} behind the log's head" if one.position is not None else "reads no log"
        oldest = f" since {iso(one.oldest_parked_at)}" if one.oldest_parked_at is not None else ""
        print(f"{one.name}  {where}  shards {one.shards}  parked {one.parked}{oldest}")
        for member in members.get(one.name, ()):
            fault = f"  fails for {member.failing:.0f} s: {member.fault}" if member.failing is not None else ""
            host = member.host or "an unnamed host"
            print(printable(f"  {member.id}  on {host}  busy {member.busy}  seen {iso(member.seen_at)}{fault}"))


async def _parked(database: Database, consumers: Sequence[ConsumerStatus]) -> None:
    parked = ParkedRecords(database)
    for consumer in consumers:
        page = await parked.page(consumer.name)
        while page:
            for record in page:
                print(printable_lines(_line(record)))
            page = await parked.page(consumer.name, after=page[-1].position)


def _line(record: ParkedRecord) -> str:
    head = f"{record.consumer}  {record.position:>8}  {record.stream}  {record.topic}"
    replay = "  replay requested" if record.replay else ""
    return f"{head}  tried {record.attempts}  parked {iso(record.parked_at)}{replay}\n          {record.error}"
