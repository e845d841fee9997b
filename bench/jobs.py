"""The job engine: jobs per second compared with Procrastinate, the time a job waits for its start, and acceptance with a long
queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Protocol

import aiohttp
import psycopg
import uvloop

from bench import procrastinate_twin
from bench.engine import CLIENT, Engine, EngineOverHttp, job_body, posted, workers
from bench.ground import Ground, Served, driven, in_turns
from bench.load import Seen
from bench.procrastinate_twin import Procrastinate
from bench.report import Result, Table, Target, middle

_CLIENTS = 32
_MAX_JOBS = 500
_PROCESSES = (1, 4)
_STEPS: Mapping[int, Sequence[int]] = {1: (10, 30, 60), 4: (10, 20, 30)}
_CONCURRENCY: Mapping[int, Sequence[int]] = {1: (1, 10, 30, 60), 4: (1, 5, 30)}
"""The numbers of steps at a time, by the number of processes; both sides are shown with the best one."""
_DEFAULT_STEPS = 4
_WARM = 20
_GAP = 0.05
_FILLING = 256
_LOOK = 0.2
_PATIENCE = 180.0
_RESTED = 15
"""The number of consecutive looks at the database that must find no running statement."""
_BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state = 'active'
"""
_STARTS = """
SELECT originator_id, min(recorded_at) FILTER (WHERE topic = 'job.started'),
    min(recorded_at) FILTER (WHERE topic = 'job.task_started')
FROM events WHERE originator_id = ANY(%s) GROUP BY originator_id
"""

_Waits = dict[str, list[float]]


class JobQueue(Protocol):
    """The interface of both job queues. A mark separates earlier jobs from the jobs that are measured."""

    def put(self, many: int) -> None: ...

    def ended(self) -> int: ...

    def mark(self) -> int: ...

    def took(self, mark: int, many: int) -> float: ...


@dataclass(frozen=True, slots=True)
class _Trial:
    """A trial with `processes` workers, each of which runs several steps at a time."""

    ground: Ground
    processes: int
    at_once: int
    jobs: int

    def ledger(self) -> float:
        engine = Engine(self.ground.database("bench_jobs"), clients=_CLIENTS, max_jobs=_MAX_JOBS)
        with ExitStack() as running:
            self._ours(running, engine.url)
            return self._rate(engine)

    def http(self) -> float:
        url = self.ground.database("bench_jobs")
        with ExitStack() as running:
            server = running.enter_context(self.ground.server("product", url))
            engine = EngineOverHttp(url, server, clients=_CLIENTS, max_jobs=_MAX_JOBS)
            self._ours(running, url)
            return self._rate(engine)

    def procrastinate(self) -> float:
        queue = Procrastinate(self.ground.plain_database("bench_procrastinate"), clients=_CLIENTS)
        with ExitStack() as running:
            for _ in range(self.processes):
                running.enter_context(procrastinate_twin.worker(self.ground, queue.url, concurrency=self.at_once))
            return self._rate(queue)

    def _ours(self, running: ExitStack, url: str) -> None:
        for _ in range(self.processes):
            running.enter_context(workers(self.ground, url, steps=self.at_once))

    def _rate(self, queue: JobQueue) -> float:
        """Return jobs per second, from the first acceptance to the last completion. Before that, runs enough jobs to start all
        processes."""
        before = max(100, 5 * self.processes * self.at_once)
        queue.put(before)
        _await(queue, before)
        self.ground.settle()
        mark = queue.mark()
        queue.put(self.jobs)
        _await(queue, before + self.jobs)
        return self.jobs / queue.took(mark, self.jobs)


def _await(queue: JobQueue, many: int) -> None:
    end = time.monotonic() + _PATIENCE
    while (ended := queue.ended()) < many:
        if time.monotonic() > end:
            raise RuntimeError(f"only {ended} of {many} jobs ended")
        time.sleep(_LOOK)


def jobs(ground: Ground) -> Result:
    """(m) no-op jobs per second, from acceptance to completion, with 1 and with 4 worker processes; compared with Procrastinate."""
    many, rounds = (500, 1) if ground.effort.quick else (5_000, 3)
    result = Result("jobs", raw={"tried": {}})
    cells: dict[str, Callable[[], float]] = {}
    at_once: dict[str, int] = {}
    for processes in _PROCESSES:
        for side, candidates, kinds in _SIDES:
            asked = candidates[processes][1:2] if ground.effort.quick else candidates[processes]
            tried = {n: kinds[0](_Trial(ground, processes, n, many // 2)) for n in asked}
            best = max(tried, key=tried.__getitem__)
            result.raw["tried"][f"{side}, {processes}"] = tried
            for kind in kinds:
                name = f"{side}{_HOW[kind]}, {processes}"
                at_once[name], cells[name] = best, partial(kind, _Trial(ground, processes, best, many))
    seen = in_turns(cells, rounds=rounds)
    table = Table(f"(m) {many:,} no-op jobs, accepted to completed; ratio: to Procrastinate", ("", "at once", "jobs/s", "ratio"))
    for name, rates in seen.items():
        base_rates = seen[f"Procrastinate, {name.rpartition(' ')[2]}"]
        ratio = middle([ours / theirs for ours, theirs in zip(rates, base_rates, strict=True)])
        table.add(name, at_once[name], middle(rates), ratio)
        if name.startswith("ours"):
            result.targets.append(Target(f"jobs/s, {name}, to Procrastinate", ratio, 2.0))
    result.tables.append(table)
    result.raw |= {"rates": seen}
    return result


_HOW = {_Trial.ledger: " in process", _Trial.http: " over HTTP", _Trial.procrastinate: ""}
_SIDES = (("ours", _STEPS, (_Trial.ledger, _Trial.http)), ("Procrastinate", _CONCURRENCY, (_Trial.procrastinate,)))


def job_starts(ground: Ground) -> Result:
    """(n) the time that a job waits for its start when a slot is free; all in one process, and workers in another."""
    count = 60 if ground.effort.quick else 300
    waits: dict[str, _Waits] = {}
    url = ground.database("bench_starts_one")
    Engine(url, clients=_CLIENTS, max_jobs=_MAX_JOBS)
    with ground.server("working", url) as product:
        waits["one process"] = uvloop.run(_waits(product, url, count))
    url = ground.database("bench_starts_two")
    Engine(url, clients=_CLIENTS, max_jobs=_MAX_JOBS)
    with ground.server("product", url) as product, workers(ground, url, steps=_DEFAULT_STEPS):
        waits["API and workers apart"] = uvloop.run(_waits(product, url, count))
    table = Table(f"(n) From POST, {count} jobs one at a time", ("", "to", "p50 ms", "p99 ms", "slowest ms"))
    result = Result("job-starts", [table], raw=dict(waits))
    for where, times in waits.items():
        for what, values in times.items():
            table.add(where, what, _at(values, 50), _at(values, 99), max(values))
        result.targets += [
            Target(f"POST to job.started, {where}, p{share}", _at(times["job.started"], share), wanted, "ms", at_most=True)
            for share, wanted in ((50, 15.0), (99, 60.0))
        ]
    return result


def _at(values: Sequence[float], share: int) -> float:
    """Return a percentile of the values."""
    return sorted(values)[min(len(values) * share // 100, len(values) - 1)]


async def _waits(product: Served, url: str, count: int) -> _Waits:
    """Return the waits in milliseconds from the moment that a POST is sent. The log uses the same clock of the machine."""
    rng, sent = Random(1), dict[str, datetime]()
    waits: _Waits = {"answer": [], "job.started": [], "job.task_started": []}
    headers = {"API-KEY": product.key or "", "client": CLIENT}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{product.port}", headers=headers) as session,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as connection,
    ):
        for number in range(_WARM + count):
            await asyncio.sleep(rng.uniform(0.0, _GAP))
            begun = datetime.now(UTC)
            async with session.post("/engine/job", json=job_body(f"match-{number}")) as answer:
                answer.raise_for_status()
                job = (await answer.json())["id"]
            if number >= _WARM:
                waits["answer"].append((datetime.now(UTC) - begun) / timedelta(milliseconds=1))
                sent[f"job:{job}"] = begun
            await _completed(connection, job)
        cursor = await connection.execute(_STARTS, (list(sent),))
        async for stream, *moments in cursor:
            for what, moment in zip(("job.started", "job.task_started"), moments, strict=True):
                waits[what].append((moment - sent[stream]) / timedelta(milliseconds=1))
    return waits


async def _completed(connection: psycopg.AsyncConnection, job: int) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            cursor = await connection.execute("SELECT FROM job_view WHERE id = %s AND state = 2", (job,))
            if cursor.rowcount:
                return
            await asyncio.sleep(0.005)


def job_queue(ground: Ground) -> Result:
    """(o) acceptance over HTTP with 100 000 queued jobs, and with none; all workers in the same process."""
    many = 5_000 if ground.effort.quick else 100_000
    long = ground.database("bench_queue_long")
    Engine(long, clients=_FILLING, max_jobs=0).put(many)
    cells = {"nothing": partial(_accepting, ground), f"{many:,} jobs": partial(_accepting, ground, long)}
    seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(o) POST of jobs, by what is queued already", ("", "clients", "req/s", "p50 ms", "p99 ms"))
    for name, rounds in seen.items():
        for clients in (1, _CLIENTS):
            figures = [middle([getattr(run[clients], figure) for run in rounds]) for figure in ("rate", "p50", "p99")]
            table.add(name, clients, *figures)
    none, queued = seen.values()
    slower = middle([before[_CLIENTS].rate / after[_CLIENTS].rate for before, after in zip(none, queued, strict=True)])
    later = middle([after[1].p50 / before[1].p50 for before, after in zip(none, queued, strict=True)])
    targets = [
        Target(f"acceptance with {many:,} queued jobs, {what}", ratio, 1.3, at_most=True)
        for what, ratio in (("throughput", slower), ("p50", later))
    ]
    return Result("job-queue", [table], targets, raw=dict(seen))


def _await_rest(url: str) -> None:
    """Wait until the workers have read, indexed and sealed the events that were appended before the workers started."""
    rested = 0
    end = time.monotonic() + _PATIENCE
    with psycopg.connect(url, autocommit=True) as connection:
        while rested < _RESTED:
            if time.monotonic() > end:
                raise RuntimeError("the workers have not caught up with the log")
            time.sleep(_LOOK)
            row = connection.execute(_BUSY).fetchone()
            rested = 0 if row is None or row[0] else rested + 1


def _accepting(ground: Ground, url: str = "") -> Mapping[int, Seen]:
    """Measure acceptance without starting a job. Jobs accepted in the runs with an empty queue are dropped with their database."""
    if not url:
        url = ground.database("bench_queue_none")
        Engine(url, clients=_CLIENTS, max_jobs=0)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    ground.settle()
    with ground.server("working", url) as product:
        requests = [posted(product)]
        _await_rest(url)
        seen = {clients: driven(product, requests, clients=clients, effort=ground.effort) for clients in (1, _CLIENTS)}
    with psycopg.connect(url) as connection:
        moved = connection.execute("SELECT FROM job_view WHERE state <> 0").rowcount
    if moved:
        raise RuntimeError(f"{moved} jobs are not queued any more")
    return seen
