"""Fills a log quickly with real data: domain events made by the aggregates, appended by the product's statement.

It takes a shorter way than a request: no HTTP, no loading, and many aggregates per statement. Views are rebuilt afterwards. Runs in
processes of its own (`python -m bench.fill`), so that one decides while the other waits for PostgreSQL.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise

import psycopg
import uvloop

from api.wiring.catalogue import catalogue, views
from api.wiring.core import prepare
from bench import schedule
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.mapper import EventMapper
from projections.kernel.database.database import Database
from projections.log.append import send_events
from projections.log.partitions import EVENTS_PER_PARTITION, MAKE_ROOM
from projections.log.rebuild import Rebuilder, Rebuilt
from projections.log.statement import WriteSet, statement
from projections.log.streams import Streams
from projections.log.write_set import WriteSets

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the log that one process appends: the aggregates `first` to `last` of `total`. `what` is schedule,
    catalogued, webhooks, lives or beginnings."""

    url: str
    what: str
    first: int
    last: int
    total: int

    def roots(self) -> Iterator[AggregateRoot]:
        numbers = range(self.first, self.last)
        if self.what in ("schedule", "catalogued"):
            catalogued = self.what == "catalogued"
            if not self.first:
                yield from schedule.rooms()
                yield from schedule.catalogue() if catalogued else ()
            yield from schedule.scheduled(numbers, total=self.total, catalogued=catalogued)
        elif self.what == "webhooks":
            yield from schedule.webhooks(numbers)
        elif self.what == "lives":
            yield from schedule.lives(numbers, space=3)
        else:
            yield from schedule.beginnings(numbers, space=4)


def fill(url: str, what: str, *, total: int, processes: int = 2) -> None:
    """Append `total` aggregates. When this returns, their events are in the log and their views are not written yet."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(MAKE_ROOM.encode(), (None, EVENTS_PER_PARTITION))
    bounds = [total * number // processes for number in range(processes + 1)]
    shares = [Share(url, what, first, last, total) for first, last in pairwise(bounds)]
    running = [_started(share) for share in shares]
    for process in running:
        if process.wait():
            raise RuntimeError("filling the log failed")


def _started(share: Share) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.fill"], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(share)))
    process.stdin.close()
    return process


async def rebuild(url: str, names: Sequence[str]) -> list[Rebuilt]:
    """Make views from the log, as `medialedger projections rebuild` does."""
    role = await prepare(url)
    owner = Database(url, size=4)
    await owner.open()
    try:
        rebuilder = Rebuilder(owner, Streams(owner, EventMapper(catalogue())), app_role=role)
        return [await rebuilder.rebuild(views().by_name[name]) for name in names]
    finally:
        await owner.close()


async def _append(share: Share) -> None:
    await append_all(share.url, _batches(share.roots()))


def _batches(roots: Iterator[AggregateRoot]) -> Iterator[list[WriteSet]]:
    write_sets = WriteSets(EventMapper(catalogue()), views())
    while batch := list(islice(roots, _BATCH)):
        yield [WriteSet(write_sets.event_rows(root.collect_events(), Cause.by("bench"))) for root in batch]  # type: ignore[arg-type]


async def append_all(url: str, batches: Iterable[Sequence[WriteSet]]) -> None:
    """Append each batch with one statement."""
    connection = await Database(url).connect("fill")
    await send_events(connection)
    try:
        for batch in batches:
            text, parameters = statement(batch)
            await connection.execute(text, parameters, binary=True)
    finally:
        await connection.close()


def main() -> None:
    uvloop.run(_append(Share(**json.load(sys.stdin))))


if __name__ == "__main__":
    main()
