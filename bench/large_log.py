"""Fills a log with lives of ten events each, as fast as PostgreSQL accepts them: whole batches through `log_append()`.

The events come from a few lives made by the aggregates; each stream gets a copy, so that nothing is decided a million times. Many
lives run side by side, as in a real log: the next event of a stream follows thousands of events later. Runs in processes of its own
(`python -m bench.large_log`), so that one computes hashes while the other waits for PostgreSQL.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

import psycopg
import uvloop

from api.wiring.catalogue import catalogue
from bench import schedule
from bench.fill import append_all
from domain.event.aggregate import MediaEvent
from domain.kernel.cause import Cause
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from projections.log.partitions import EVENTS_PER_PARTITION
from projections.log.statement import LogRow, WriteSet
from projections.log.write_set import metadata_text

EVENTS_OF_A_LIFE = 10
BATCH = 500
_LIVES = 5_000
_SIDE_BY_SIDE = 20_000
_SPACE = 3


def stream(number: int) -> str:
    return MediaEvent.stream(schedule.key(number, space=_SPACE))


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the log that one process appends: the lives `first` to `last`."""

    url: str
    first: int
    last: int

    def batches(self) -> Iterator[list[LogRow]]:
        mapper = EventMapper(catalogue())
        made = [
            [(event.TOPIC, mapper.state(event)) for event in root.collect_events()]  # type: ignore[attr-defined, arg-type]
            for root in schedule.lives(range(_LIVES), space=_SPACE)
        ]
        for begin in range(self.first, self.last, _SIDE_BY_SIDE):
            end = min(begin + _SIDE_BY_SIDE, self.last)
            for version in range(EVENTS_OF_A_LIFE):
                for low in range(begin, end, BATCH):
                    numbers = range(low, min(low + BATCH, end))
                    yield [_row(number, version + 1, made[number % _LIVES][version]) for number in numbers]


def _row(number: int, version: int, event: tuple[str, bytes]) -> LogRow:
    topic, state = event
    metadata = metadata_text(Cause.by("bench"))
    return LogRow.of(stream=stream(number), version=version, topic=topic, event_id=new_id(), state=state, metadata=metadata)


def fill(url: str, *, events: int, partition: int, processes: int = 2) -> None:
    """Append `events` events to partitions of `partition` positions; an empty partition follows them. Their views are not
    written."""
    with psycopg.connect(url, autocommit=True) as connection:
        for through, each in ((events, partition), (events + EVENTS_PER_PARTITION, EVENTS_PER_PARTITION)):
            connection.execute("SELECT log_make_partitions(%s, %s)", (through, each))
    lives = events // EVENTS_OF_A_LIFE
    bounds = [lives * number // processes for number in range(processes + 1)]
    running = [_started(Share(url, first, last)) for first, last in pairwise(bounds)]
    if sum(process.wait() for process in running):
        raise RuntimeError("filling the log failed")


def _started(share: Share) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.large_log"], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(share)))
    process.stdin.close()
    return process


async def _append(share: Share) -> None:
    await append_all(share.url, ([WriteSet(batch)] for batch in share.batches()))


def main() -> None:
    uvloop.run(_append(Share(**json.load(sys.stdin))))


if __name__ == "__main__":
    main()
