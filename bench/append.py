"""The append path alone, compared with the single-row INSERTs of pgbench, PostgreSQL's own load generator."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import uvloop

from api.wiring.core import prepare
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from domain.kernel.ids import new_id
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.statement import LogRow, WriteSet

_STATE = b'{"timestamp":"2031-01-02T12:00:00Z","title":"' + b"x" * 393 + b'"}'
_METADATA = (
    '{"actor":"bench","correlation_id":"00000000-0000-4000-8000-000000000000","command_id":"00000000-0000-4000-8000-000000000000"}'
)
_TOPIC = "event.registered"
_RAW = """
CREATE TABLE raw (
    position           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    originator_id      text   COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    topic              text   COLLATE "C" NOT NULL,
    event_id           uuid   NOT NULL,
    state              bytea  NOT NULL,
    metadata           json   NOT NULL,
    recorded_at        timestamptz NOT NULL,
    salt               bytea  NOT NULL,
    UNIQUE (originator_id, originator_version)
)
"""
_INSERT = """
INSERT INTO raw (originator_id, originator_version, topic, event_id, state, metadata, recorded_at, salt)
VALUES ('event:' || gen_random_uuid(), 1, :topic, gen_random_uuid(), :state, :metadata, clock_timestamp(), :salt);
"""
_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
_LATENCY = re.compile(r"^latency average = ([0-9.]+) ms", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second, with times in milliseconds. pgbench reports only the average time."""

    rate: float
    p50: float
    p99: float


def append(ground: Ground) -> Result:
    """(b) One event per command through the Appender, at 1, 32 and 128 in flight, compared with pgbench with 1 and 32 clients."""
    url = ground.database("bench_append")
    script = ground.home / "insert.sql"
    script.write_text(_INSERT.strip().replace("\n", " ") + "\n")
    _run_psql(ground, url)
    cells: dict[str, Callable[[], Rate]] = {
        f"pgbench INSERT {clients}": partial(_pgbench, ground, url, clients=clients) for clients in (1, 32)
    }
    cells |= {f"append {flying}": partial(_append, url, flying=flying, seconds=ground.effort.seconds) for flying in (1, 32, 128)}
    ground.settle()
    seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(b) Appends and pgbench in turns; ratio: of pgbench with 1 or 32 clients", _HEADINGS)
    for name, rates in seen.items():
        kind, _, flying = name.rpartition(" ")
        table.add(
            kind, flying, *(middle([getattr(rate, part) for rate in rates]) for part in ("rate", "p50", "p99")), _ratio(seen, name)
        )
    targets = [
        Target("append of pgbench, 32 in flight", _ratio(seen, "append 32"), 1.6),
        Target("append of pgbench, 128 in flight", _ratio(seen, "append 128"), 2.4),
    ]
    return Result("append", [table], targets, raw=dict(seen))


_HEADINGS = ("", "in flight", "rows/s", "p50 ms", "p99 ms", "ratio")


def _ratio(seen: dict[str, list[Rate]], name: str) -> float:
    base_rates = seen["pgbench INSERT 1" if name.endswith(" 1") else "pgbench INSERT 32"]
    return middle([run.rate / base.rate for run, base in zip(seen[name], base_rates, strict=True)])


def _run_psql(ground: Ground, url: str) -> None:
    subprocess.run([str(ground.programs / "psql"), "--quiet", "--command", _RAW, url], check=True)


def _pgbench(ground: Ground, url: str, *, clients: int) -> Rate:
    """Run a pgbench script that is prepared once per client. The payload is sent with every row, as the product does."""
    given = {"topic": _TOPIC, "state": "\\x" + _STATE.hex(), "metadata": _METADATA, "salt": "\\x" + bytes(16).hex()}
    command = [
        *(str(ground.programs / "pgbench"), "--no-vacuum", "--protocol=prepared", f"--client={clients}"),
        *(f"--jobs={min(clients, 2)}", f"--time={max(round(ground.effort.seconds), 2)}", f"--file={ground.home / 'insert.sql'}"),
        *(f"--define={name}={value}" for name, value in given.items()),
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rate, latency = _TPS.search(done.stdout), _LATENCY.search(done.stdout)
    if done.returncode or rate is None or latency is None:
        raise RuntimeError(f"pgbench failed: {done.stderr[-2000:]}")
    return Rate(float(rate[1]), float(latency[1]), float("nan"))


def _append(url: str, *, flying: int, seconds: float) -> Rate:
    return uvloop.run(_appending(url, flying, seconds))


async def _appending(url: str, flying: int, seconds: float) -> Rate:
    """Run the append path of the product with its database role and appender. Leaves, root and chain hash are computed."""
    database = Database(url, role=await prepare(url))
    appender = Appender(database)
    await appender.start()
    times: list[float] = []
    since = time.perf_counter()
    try:
        await asyncio.gather(*(client(appender, times, until=since + seconds) for _ in range(flying)))
    finally:
        took = time.perf_counter() - since
        await appender.stop()
    times.sort()
    return Rate(len(times) / took, times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000)


async def client(appender: Appender, times: list[float], *, until: float) -> None:
    now = time.perf_counter()
    while now < until:
        await appender.append(WriteSet((row(),)))
        before, now = now, time.perf_counter()
        times.append(now - before)


def row(stream: str = "") -> LogRow:
    """Return a row to append. Without `stream` it begins a new stream."""
    name, event_id = stream or f"event:{new_id()}", new_id()
    return LogRow.of(stream=name, version=1, topic=_TOPIC, event_id=event_id, state=_STATE, metadata=_METADATA)
