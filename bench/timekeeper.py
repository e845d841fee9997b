"""The timekeeper: how late Events start, and the number of starts per second."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import psycopg
import uvloop

from api.wiring.core import core
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation

_AT_ONCE = 256
_SPREAD = 60.0
_RESERVE = 5.0
_AT_LEAST = 200
"""The number of Events that are created per second."""
_LONGEST = 300.0
_MISSED = """
INSERT INTO event_view (id, version, deleted, state, scheduled_start, scheduled_end, auto_start_at, date_created, date_modified,
    shown_version, search_text, document)
SELECT gen_random_uuid(), 1, false, 0, start, start + interval '1 hour', start, start, start, 1, '', '{}'
FROM generate_series(1, %s) AS n CROSS JOIN LATERAL (SELECT now() - interval '1 day' - n * interval '1 minute' AS start) AS made
"""
_DONE = "SELECT count(*) FROM events WHERE topic = 'event.state_changed'"
_LATE = """
SELECT extract(epoch FROM e.recorded_at - v.scheduled_start)::float8 * 1000 AS late, e.recorded_at
FROM events e JOIN event_view v ON e.originator_id = 'event:' || v.id WHERE e.topic = 'event.state_changed' ORDER BY late
"""


def timekeeper(ground: Ground) -> Result:
    """(w) 10 000 scheduled starts in one minute, and all at once; together with Events whose end has passed too."""
    count, seconds, missed = (1_000, 6.0, 10_000) if ground.effort.quick else (10_000, _SPREAD, 100_000)
    cells = {
        "over a minute": partial(_lateness, ground, count=count, seconds=seconds, missed=0),
        f"... after {missed:,} missed": partial(_lateness, ground, count=count, seconds=seconds, missed=missed),
        "all at once": partial(_lateness, ground, count=count, seconds=0.0, missed=0),
        f"all at once after {missed:,} missed": partial(_lateness, ground, count=count, seconds=0.0, missed=missed),
    }
    seen = in_turns(cells, rounds=1)
    table = Table(f"(w) {count:,} scheduled starts, ms late by the database's clock", ("", "p50", "p99", "slowest", "starts/s"))
    for name, [(late, rate)] in seen.items():
        table.add(name, middle(late), late[len(late) * 99 // 100], late[-1], rate)
    [(spread, _)], [(_, rate)] = seen["over a minute"], seen["all at once"]
    targets = [
        Target(f"{count:,} starts in {seconds:.0f} s, late p99", spread[len(spread) * 99 // 100], 250, "ms", at_most=True),
        Target("starts a second, all due at once", rate, 1_000, "/s"),
    ]
    return Result("timekeeper", [table], targets, raw=dict(seen))


def _lateness(ground: Ground, *, count: int, seconds: float, missed: int) -> tuple[list[float], float]:
    """Return the milliseconds by which each start was late, in order, and the starts per second from the first to the last."""
    url = ground.database("bench_timekeeper")
    command = ["api.cli.main", "workers", "timekeeper"]
    environment = {"MEDIALEDGER_DATABASE_URL": url, "MEDIALEDGER_HOME": str(ground.home / "timekeeper")}
    with (
        psycopg.connect(url, autocommit=True) as connection,
        ground.process("timekeeper", command, environment=environment),
    ):
        connection.execute(_MISSED.encode(), (missed,))
        begin = _now(connection) + timedelta(seconds=_RESERVE + count / _AT_LEAST)
        uvloop.run(_plan(url, [begin + timedelta(seconds=seconds * number / count) for number in range(count)]))
        connection.execute("VACUUM (ANALYZE) event_view")
        ground.settle()
        if _now(connection) > begin:
            raise RuntimeError("the first Event was due before all were added: the machine is too busy")
        deadline = time.monotonic() + seconds + _LONGEST
        while (connection.execute(_DONE).fetchone() or (0,))[0] < count:
            if time.monotonic() > deadline:
                raise RuntimeError("not all Events were started")
            time.sleep(0.5)
        rows = connection.execute(_LATE).fetchall()
    times = sorted(recorded for _, recorded in rows)
    return [late for late, _ in rows], count / max((times[-1] - times[0]).total_seconds(), 0.001)


def _now(connection: psycopg.Connection) -> datetime:
    [now] = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
    assert isinstance(now, datetime)
    return now


async def _plan(url: str, starts: list[datetime]) -> None:
    inner = core(url, role=None)
    await inner.start()
    try:
        for first in range(0, len(starts), _AT_ONCE):
            await asyncio.gather(*(_add(inner.executor, new_id(), start) for start in starts[first : first + _AT_ONCE]))
    finally:
        await inner.stop()


async def _add(executor: Executor, key: UUID, start: datetime) -> None:
    changes = {"title": f"Match {key}", "scheduled_start": start, "scheduled_end": start + timedelta(hours=2), "auto_start": True}
    await executor.execute(AddOrUpdateEvent(key, changes, new=True), invocation=Invocation.by("bench"))
