"""Appends while something runs that must not slow them down: a snapshot that stays open for long, or commands that are refused."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial

import psycopg
import uvloop

from api.wiring.core import prepare
from bench.append import client, row
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from domain.kernel.errors import ConcurrencyConflict
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.statement import WriteSet

_FLYING = 32
_HELD_QUICKLY, _HELD = 60.0, 600.0  # seconds of appends during the snapshot


def snapshot(ground: Ground) -> Result:
    """(q) Appends while a REPEATABLE READ snapshot is open for 10 minutes of appends (1 with --quick), and without it."""
    snapshot_url, without = ground.database("bench_beside"), ground.database("bench_without")
    duration = _HELD_QUICKLY if ground.effort.quick else _HELD
    rounds: list[tuple[float, float]] = []
    ground.settle()
    with psycopg.connect(snapshot_url) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT count(*) FROM events")
        while len(rounds) * ground.effort.seconds < duration:
            pair = {
                url: appends_per_second(url, seconds=ground.effort.seconds, losers=0)
                for url in _ordered(snapshot_url, without, len(rounds))
            }
            rounds.append((pair[snapshot_url], pair[without]))
    half = len(rounds) // 2
    table = Table(
        f"(q) Appends during a snapshot that is open for {duration:.0f} s of appends", ("rounds", "appends/s", "without", "ratio")
    )
    for name, part in (("first half", rounds[:half]), ("second half", rounds[half:])):
        table.add(name, middle([rate for rate, _ in part]), middle([rate for _, rate in part]), _ratio(part))
    target = Target("append during a long snapshot", _ratio(rounds[half:]), 0.9)
    return Result("snapshot", [table], [target], raw={"rounds": rounds})


def losers(ground: Ground) -> Result:
    """(r) 32 appends in flight, alone and next to 1 and 4 clients that append a stale version again and again; their appends do
    not count."""
    url = ground.database("bench_losers")
    ground.settle()
    cells = {str(number): partial(appends_per_second, url, seconds=ground.effort.seconds, losers=number) for number in (0, 1, 4)}
    seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(r) Appends while others lose races; ratio: of appends alone", ("losers", "appends/s", "ratio"))
    ratios = {name: _ratio(list(zip(rates, seen["0"], strict=True))) for name, rates in seen.items()}
    for name, rates in seen.items():
        table.add(name, middle(rates), ratios[name])
    return Result("losers", [table], [Target("append while four others lose races", ratios["4"], 0.8)], raw=dict(seen))


def _ordered(with_snapshot: str, without: str, number: int) -> tuple[str, str]:
    return (with_snapshot, without) if number % 2 else (without, with_snapshot)


def _ratio(pairs: list[tuple[float, float]]) -> float:
    return middle([rate / base for rate, base in pairs])


def appends_per_second(url: str, *, seconds: float, losers: int = 0) -> float:
    """Return the rate of appends with 32 in flight, next to `losers` clients whose appends conflict and do not count."""
    return uvloop.run(_appending(url, seconds=seconds, losers=losers))


async def _appending(url: str, *, seconds: float, losers: int) -> float:
    appender = Appender(Database(url, role=await prepare(url)))
    await appender.start()
    times: list[float] = []
    stale = WriteSet((row("event:stale"),))
    with suppress(ConcurrencyConflict):
        await appender.append(stale)
    until = time.perf_counter() + seconds
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_FLYING):
                group.create_task(client(appender, times, until=until))
            for _ in range(losers):
                group.create_task(_lose(appender, until=until))
    finally:
        await appender.stop()
    return len(times) / seconds


async def _lose(appender: Appender, *, until: float) -> None:
    while time.perf_counter() < until:
        with suppress(ConcurrencyConflict):
            await appender.append(WriteSet((row("event:stale"),)))
