"""A large log compared with a small one: the size of an event on disk, and the operations that become slower."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import psycopg
import uvloop

from api.wiring.catalogue import catalogue
from bench import large_log, schedule
from bench.append_contention import appends_per_second
from bench.fill import rebuild
from bench.ground import Effort, Ground, Served, driven, in_turns
from bench.large_log import EVENTS_OF_A_LIFE, fill
from bench.report import Result, Table, Target, middle
from domain.kernel.mapper import EventMapper
from projections.audit.partition_file import export, verify_file
from projections.audit.seals import partitions, seal_full
from projections.audit.stored_log import StoredLog
from projections.audit.verify import verify
from projections.kernel.database.database import Database
from projections.log.reader import window
from projections.log.streams import Streams

_VIEW = "event_view"
_SMALL = 100_000
_QUICK_SMALL = 10_000
_LARGE_PARTITIONS = 10
_PARTITIONED = 100_000
_COUNTS = (1, 10, 50, 200)
_LOADS = 1_000
_READS = {
    "load": "load of an aggregate of 10 events",
    "page": "page of the log, 500 events",
    "list": "list of 20 Events, HTTP",
    "start": "start of a server",
}
_SIZES = """
SELECT 'events' AS what, sum(pg_table_size(t.name))::bigint, sum(pg_indexes_size(t.name))::bigint
FROM log_partitions p, LATERAL (SELECT ('event_partitions.events_' || p.first_position)::regclass AS name) AS t
UNION ALL SELECT name, pg_table_size(name::regclass), pg_indexes_size(name::regclass)
FROM unnest(ARRAY['stream_versions', 'commits', 'event_view']) AS name
"""
_SPILLED = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"


@dataclass(frozen=True, slots=True)
class Log:
    """A filled log. `took` is the number of seconds that filling took."""

    url: str
    events: int
    took: float

    @property
    def lives(self) -> int:
        return self.events // EVENTS_OF_A_LIFE


def size(ground: Ground) -> Result:
    """(u) A log of 10 000 000 events (100 000 when quick, --events for another) compared with a small one; disk, rates,
    partitions."""
    result = Result("size")
    small = _filled(ground, "small", _QUICK_SMALL if ground.effort.quick else _SMALL, partitions=1)
    large = _filled(ground, "large", ground.effort.events, partitions=_LARGE_PARTITIONS)
    logs = {"small": small, "large": large}
    _replays(ground, result, logs)
    _disk(result, large)
    _appends(ground, result, logs)
    _reads(ground, result, logs)
    _file(ground, result, large)
    _by_partitions(ground, result)
    return result


def _filled(ground: Ground, name: str, events: int, *, partitions: int) -> Log:
    url = ground.database(f"bench_size_{name}")
    _, took = _timed(partial(fill, url, events=events, partition=max(events // partitions, 1)))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    print(f"  {events:,} events in {took:.0f} s", flush=True)
    return Log(url, events, took)


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    since = time.perf_counter()
    return run(), time.perf_counter() - since


def _replays(ground: Ground, result: Result, logs: dict[str, Log]) -> None:
    """Measure the operations that read the whole log."""
    table = Table("(u) Events a second", ("", *(f"{log.events:,} events" for log in logs.values()), "ratio"))
    ground.settle()
    rebuilt, spilled, verified = {}, {}, {}
    for name, log in logs.items():
        before = _value(log.url, _SPILLED)
        (made,), took = _timed(partial(_rebuild, log.url))
        rebuilt[name] = made.events / took
        spilled[name] = (_value(log.url, _SPILLED) - before) / made.events
        verdict, took = _timed(partial(verify, log.url))
        if not verdict.valid:
            raise RuntimeError(f"the log is damaged: {verdict.reason}")
        verified[name] = verdict.checked / took
        print(f"  {log.events:,} events rebuilt and verified", flush=True)
    table.add("filled, in batches of 500", *_both({name: log.events / log.took for name, log in logs.items()}))
    table.add("rebuild of event_view", *_both(rebuilt))
    table.add("rebuild: bytes spilled, an event", *_both(spilled))
    table.add("audit verify", *_both(verified))
    result.tables.append(table)
    result.targets.append(Target("rebuild of the large log of the small one", rebuilt["large"] / rebuilt["small"], 0.7))
    result.raw |= {"rebuilt": rebuilt, "spilled": spilled, "verified": verified}


def _appends(ground: Ground, result: Result, logs: dict[str, Log]) -> None:
    ground.settle()
    appended = in_turns(
        {name: partial(appends_per_second, log.url, seconds=ground.effort.seconds) for name, log in logs.items()},
        rounds=ground.effort.rounds,
    )
    result.tables[0].add("append, 32 in flight", *_both({name: middle(rates) for name, rates in appended.items()}))
    ratio = middle([large / run for run, large in zip(appended["small"], appended["large"], strict=True)])
    result.targets.append(Target("append to the large log of the small one", ratio, 0.8))
    result.raw["appended"] = appended


def _both(seen: dict[str, float]) -> tuple[float, float, float]:
    return seen["small"], seen["large"], seen["large"] / seen["small"] if seen["small"] else float("nan")


def _rebuild(url: str) -> Any:
    return uvloop.run(rebuild(url, (_VIEW,)))


def _disk(result: Result, log: Log) -> None:
    table = Table(f"(u) Disk, {log.events:,} events", ("", "rows", "bytes a row", "of it index", "GB"))
    with psycopg.connect(log.url) as connection:
        [head, commits] = connection.execute("SELECT max(last_position), max(number) FROM commits").fetchone() or (0, 0)
        [rows] = connection.execute("SELECT count(*) FROM event_view").fetchone() or (0,)
        counts = {"events": head, "stream_versions": head, "commits": commits, _VIEW: rows}
        sizes = {name: (data, index) for name, data, index in connection.execute(_SIZES.encode()).fetchall()}
        [state] = connection.execute("SELECT avg(octet_length(state)) FROM events WHERE position <= 100000").fetchone() or (0,)
    for name, (data, index) in sizes.items():
        table.add(name, f"{counts[name]:,}", (data + index) / counts[name], index / counts[name], (data + index) / 1e9)
    result.tables.append(table)
    result.raw |= {"bytes": sizes, "rows": counts, "state": float(state)}


def _reads(ground: Ground, result: Result, logs: dict[str, Log]) -> None:
    table = Table("(u) Reads, p50 in ms", ("", *(f"{log.events:,} events" for log in logs.values()), "ratio"))
    cells: dict[str, Callable[[], float]] = {}
    for name, log in logs.items():
        cells[f"load/{name}"] = partial(_load, log)
        cells[f"page/{name}"] = partial(_window, log.url, log.events // 2)
        cells[f"start/{name}"] = partial(_start, ground, log.url)
    with ExitStack() as servers:
        for name, log in logs.items():
            server = servers.enter_context(ground.server("product", log.url))
            requests = [server.request("GET", "/api/event/")]
            cells[f"list/{name}"] = partial(_list, server, requests, effort=ground.effort)
        seen = {name: middle(values) for name, values in in_turns(cells, rounds=ground.effort.rounds).items()}
    for what, label in _READS.items():
        table.add(label, *_both({name: seen[f"{what}/{name}"] for name in logs}))
    result.tables.append(table)
    lists = {name: seen[f"list/{name}"] for name in logs}
    result.targets.append(
        Target("list p50 on the large log over the small one", lists["large"] / lists["small"], 2.0, at_most=True)
    )
    result.raw["reads"] = seen


def _start(ground: Ground, url: str) -> float:
    since = time.perf_counter()
    with ground.server("product", url):
        return (time.perf_counter() - since) * 1000


def _list(server: Served, requests: list[str], *, effort: Effort) -> float:
    return driven(server, requests, clients=1, effort=effort).p50


def _load(log: Log) -> float:
    return uvloop.run(_loading(log))


async def _loading(log: Log) -> float:
    """Return the milliseconds for one stream; streams are loaded one after another, with a query for each."""
    random = Random(schedule.SEED)
    times = []
    async with Database(log.url, size=1) as database:
        streams = Streams(database, EventMapper(catalogue()))
        for _ in range(_LOADS):
            since = time.perf_counter()
            root = await streams.load(large_log.stream(random.randrange(log.lives)))
            times.append((time.perf_counter() - since) * 1000)
            assert root is not None
            assert root.version == EVENTS_OF_A_LIFE
    return middle(times)


def _window(url: str, after: int) -> float:
    return uvloop.run(_reading(url, after))


async def _reading(url: str, after: int) -> float:
    times = []
    async with Database(url, size=1) as database:
        for _ in range(_LOADS // 10):
            since = time.perf_counter()
            await window(database, after, through=after + 500)
            times.append((time.perf_counter() - since) * 1000)
    return middle(times)


def _file(ground: Ground, result: Result, log: Log) -> None:
    table = Table("(u) One partition: sealed, exported, verified as a file", ("", "events/s", "bytes an event"))
    path = ground.home / "partition.gz"
    with StoredLog.connected(log.url, purpose="bench") as stored:
        sealed, took = _timed(lambda: next(seal_full(stored, seen=_ignore)))
        table.add("seal", sealed.events / took, "")
        header, took = _timed(lambda: export(stored, partitions(stored)[0], before=None, path=path, seen=_ignore))
    table.add("export", header.through / took, path.stat().st_size / header.through)
    _, took = _timed(lambda: verify_file(path, seen=_ignore))
    table.add("verify the file", header.through / took, "")
    path.unlink()
    result.tables.append(table)


def _ignore(_: int) -> None:
    """Ignore the progress."""


def _by_partitions(ground: Ground, result: Result) -> None:
    table = Table(
        f"(u) {_PARTITIONED:,} events by the number of partitions", ("partitions", "appends/s", "load ms", "page of the log ms")
    )
    cells: dict[str, Callable[[], float]] = {}
    for count in _COUNTS:
        log = _filled(ground, f"in_{count}", _PARTITIONED, partitions=count)
        cells[f"append/{count}"] = partial(appends_per_second, log.url, seconds=ground.effort.seconds)
        cells[f"load/{count}"] = partial(_load, log)
        cells[f"window/{count}"] = partial(_window, log.url, _PARTITIONED // 2)
    ground.settle()
    seen = {name: middle(values) for name, values in in_turns(cells, rounds=3).items()}
    for count in _COUNTS:
        table.add(f"{count:,}", *(seen[f"{what}/{count}"] for what in ("append", "load", "window")))
    result.tables.append(table)
    result.raw["by partitions"] = seen


def _value(url: str, question: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return (connection.execute(question.encode()).fetchone() or (None,))[0]
