"""The cost that workers add to writes, and the time from a commit to its notification."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import aiohttp
import aiohttp.web
import psycopg
import uvloop

from bench import schedule
from bench.deliveries import receiver
from bench.ground import Ground, Served, driven, event_posts, in_turns, made
from bench.load import Seen
from bench.report import Result, Table, Target, middle
from bench.writes import ratio
from projections.webhook.keys import position_of

_RATE = 200


def consumers(ground: Ground) -> Result:
    """(j) POST with all workers in the same process, compared with POST without workers."""
    alone, worked, subscribed = (ground.database(f"bench_{name}") for name in ("alone", "worked", "subscribed"))
    with (
        ground.server("product", alone) as product,
        ground.server("working", worked) as working,
        ground.server("working", subscribed) as telling,
        receiver() as port,
    ):
        made(telling, "webhook", {"webhookUrl": f"http://127.0.0.1:{port}/hook"})
        cells: dict[str, Callable[[], Seen]] = {
            name: partial(driven, server, event_posts(server), clients=32, effort=ground.effort)
            for name, server in {"no workers": product, "all workers": working, "all workers, a webhook": telling}.items()
        }
        ground.settle()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(j) POST by 32 clients; ratio: of the same without workers", ("", "req/s", "p50 ms", "p99 ms", "ratio"))
    for name, values in seen.items():
        figures = [middle([getattr(value, figure) for value in values]) for figure in ("rate", "p50", "p99")]
        table.add(name, *figures, ratio(values, seen["no workers"]))
    target = Target("POST with all workers, of POST without", ratio(seen["all workers"], seen["no workers"]), 0.9)
    return Result("consumers", [table], [target], raw=dict(seen))


def latency(ground: Ground) -> Result:
    """(k) From the commit of a change to its arrival at a receiver, at 200 changes a second."""
    url = ground.database("bench_latency")
    with ground.server("working", url) as product:
        waits = sorted(uvloop.run(_waits(product, url, count=int(ground.effort.seconds * 5 * _RATE))))
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    table = Table(f"(k) From commit to receipt at {_RATE} changes a second", ("", "changes", "p50 ms", "p99 ms", "slowest ms"))
    table.add("one system-wide webhook", len(waits), p50, p99, waits[-1])
    return Result("latency", [table], [Target("commit to receipt, p99", p99, 50, "ms", at_most=True)], raw={"waits": waits})


async def _waits(product: Served, url: str, *, count: int) -> list[float]:
    """Return the milliseconds from the recording of each write in the log to the arrival of its notification, by the same clock."""
    arrived: dict[int, datetime] = {}
    complete = asyncio.Event()

    def heard(position: int) -> None:
        arrived.setdefault(position, datetime.now(UTC))
        if len(arrived) == count:
            complete.set()

    async with _listening(heard) as port:
        await asyncio.to_thread(made, product, "webhook", {"webhookUrl": f"http://127.0.0.1:{port}/hook"})
        await _write(product, count)
        async with asyncio.timeout(60):
            await complete.wait()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT position, recorded_at FROM events WHERE position = ANY(%s)", (list(arrived),))
        return [(arrived[position] - recorded) / timedelta(milliseconds=1) for position, recorded in await cursor.fetchall()]


@asynccontextmanager
async def _listening(heard: Callable[[int], None]) -> AsyncIterator[int]:
    async def answer(request: aiohttp.web.BaseRequest) -> aiohttp.web.StreamResponse:
        heard(position_of(UUID(request.headers["webhook-id"])))
        return aiohttp.web.Response()

    runner = aiohttp.web.ServerRunner(aiohttp.web.Server(answer))
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _write(product: Served, count: int) -> None:
    """Send writes in an open loop: each starts at its time, however long the others take."""
    bodies = [json.loads(body) for body in schedule.post_bodies(count)]
    address = f"http://127.0.0.1:{product.port}/api/event/"
    async with aiohttp.ClientSession(headers={"API-KEY": product.key or ""}) as session:

        async def post(number: int) -> None:
            await asyncio.sleep(begun + number / _RATE - time.monotonic())
            async with session.post(address, json=bodies[number]) as answer:
                answer.raise_for_status()

        begun = time.monotonic() + 0.2
        await asyncio.gather(*(post(number) for number in range(count)))
