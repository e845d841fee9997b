"""`medialedger audit replay`: replays stored events with the eventsourcing library, and compares the outcome with the views."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import Final

import psycopg
from pydantic import ValidationError

from api.cli.arguments import NOT_WHOLE
from api.cli.printable import printable
from api.cli.run.database import first_line, open_database
from api.wiring.catalogue import catalogue, views
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.ids import canonical
from domain.kernel.mapper import EventMapper, UnknownTopic
from projections.audit.replay import Replay, Replayed

_MOST_SHOWN: Final = 20


async def replay(args: Namespace, settings: Settings) -> int:
    event_catalogue = catalogue()
    if args.aggregate not in event_catalogue.aggregates:
        raise StartError(
            printable(f"the kind {args.aggregate} does not exist; choose one of {', '.join(event_catalogue.aggregates)}")
        )
    mapper = EventMapper(event_catalogue)
    stream = None if args.id is None else f"{args.aggregate}:{canonical(args.id)}"

    def compare(conninfo: str) -> int:
        with Replay.open(conninfo, mapper=mapper, views=views()) as replaying:
            return _report_kind(replaying, args.aggregate) if stream is None else _report_stream(replaying.of_stream(stream))

    async with open_database(settings) as database:
        try:
            return await asyncio.to_thread(compare, database.url)
        except psycopg.Error as error:
            raise StartError(f"the log or a view cannot be read: {first_line(error)}") from None
        except UnknownTopic as unknown:
            raise StartError(f"the log has events of a type that this version does not know: {unknown.args[0]}") from None
        except (ValidationError, ValueError) as fault:
            print(printable(f"a stored event cannot be read: {first_line(fault)}"))
            return NOT_WHOLE


def _report_stream(replayed: Replayed) -> int:
    if not replayed.version and not replayed.differences:
        raise StartError(printable(f"the log has no events of {replayed.stream}"))
    if replayed.differences:
        print(_difference(replayed))
        return NOT_WHOLE
    events = "1 event gives" if replayed.version == 1 else f"{replayed.version} events give"
    print(f"{printable(replayed.stream)}: {events} what the views show")
    return 0


def _report_kind(replaying: Replay, kind: str) -> int:
    count = events = different = 0
    for replayed in replaying.of_kind(kind):
        count, events = count + 1, events + replayed.version
        if replayed.differences:
            different += 1
            if different <= _MOST_SHOWN:
                print(_difference(replayed))
    if different:
        print(f"{different} of {count} aggregates differ")
        return NOT_WHOLE
    print(f"{events} events of {count} aggregates give what the views show")
    return 0


def _difference(replayed: Replayed) -> str:
    return printable(f"{replayed.stream}, {replayed.version} events: {'; '.join(replayed.differences)}")
