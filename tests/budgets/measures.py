"""Counts what each request costs alone, and what events, jobs and idleness cost in a product with all workers."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from itertools import count
from pathlib import Path
from statistics import median_low
from typing import Final

import psycopg

from api.wiring.catalogue import WORKER_ROLES
from api.wiring.product import Product
from domain.kernel.ports import Invocation
from projections.consumers.leases import LEASE, PAUSE
from tests.budgets.counting import SERVER_SETTINGS, CallCounter, Counts, PeakCounter, ServerCounter
from tests.budgets.loop import CountingLoop
from tests.budgets.product import Client, running
from tests.budgets.requests import event_body, event_command, job_body, patch_body, speke_body
from tests.support.engine import plugins
from tests.support.plugins.engine_probes import NOOP
from workers.adapters.embedded_postgres import EmbeddedPostgres

Action = Callable[[], Awaitable[None]]
_SPEKE: Final = f"/{Client.name}/speke"
_WARM: Final = 25
_REPEATS: Final = 5
_OBSERVED: Final = 1.0
_AFTER: Final = 0.03
_APPENDS, _TOGETHER, _PACE = 20, 5, 0.05
_WARM_JOBS, _JOBS = 10, 8
_WINDOW: Final = LEASE + 3 * PAUSE
"""Seconds of jobs, of events, and of idleness: a whole number of renewals of leases, and more than what the jobs need."""


class Laboratory:
    """The counters, and the numbers of what is made."""

    def __init__(self, loop: CountingLoop, server: ServerCounter) -> None:
        self.loop = loop
        self.server = server
        self.number = count(100_001)
        self.calls = CallCounter()

    def end(self) -> None:
        self.calls.end()

    async def counts(self, action: Action) -> Counts:
        """Count what an action costs, and all that follows from it within a moment."""
        mark, wal, wakeups = self.server.mark, self.server.wal, self.loop.wakeups
        self.calls.start()
        try:
            await action()
            await self.loop.elapse(_AFTER)
        finally:
            calls = self.calls.stop()
        return Counts(calls, self.server.statements(mark), self.server.wal - wal, 0, self.loop.wakeups - wakeups)

    async def repeated(self, action: Action) -> Counts:
        """Return what an action costs at least. The write-ahead log of some repeats has the split of a page: its median counts."""
        repeats = [await self.counts(action) for _ in range(_REPEATS)]
        return Counts(
            min((each.calls for each in repeats), key=lambda calls: sum(calls.values())),
            min((each.statements for each in repeats), key=lambda statements: sum(statements.values())),
            median_low(each.wal_bytes for each in repeats),
            min([await self._peak(action) for _ in range(_REPEATS)]),
            min(each.wakeups for each in repeats),
        )

    async def _peak(self, action: Action) -> int:
        peak = PeakCounter()
        peak.start()
        try:
            await action()
        finally:
            most = peak.stop()
        await self.loop.elapse(_AFTER)
        return most


@contextmanager
def _server(home: Path) -> Iterator[tuple[EmbeddedPostgres, str]]:
    postgres = EmbeddedPostgres(home)
    try:
        url = postgres.start()
        with psycopg.connect(url, autocommit=True) as connection:
            for name, value in SERVER_SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CHECKPOINT")
        yield postgres, url
    finally:
        postgres.stop()


def measure(home: Path) -> dict[str, Counts]:
    """Count everything, with a server of the product whose home has been migrated. Runs in a thread with an event loop of its
    own."""
    with _server(home) as (postgres, url), ThreadPoolExecutor(1) as thread, redirect_stderr(StringIO()):
        server = ServerCounter(url, postgres.log)
        was_enabled = gc.isenabled()
        gc.collect()
        gc.disable()  # a collection would call the finalizers of other objects
        try:
            with plugins():
                return thread.submit(_run, home, url, server).result()
        finally:
            if was_enabled:
                gc.enable()
            server.close()


def _run(home: Path, url: str, server: ServerCounter) -> dict[str, Counts]:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        postmaster = server.connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'").fetchone()
        assert postmaster is not None
        loop.watch(os.getpid(), _parent(postmaster[0]))
        laboratory = Laboratory(loop, server)
        try:
            with loop.as_clock():
                return runner.run(_measured(laboratory, home=home, url=url))
        finally:
            laboratory.end()


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


async def _measured(laboratory: Laboratory, *, home: Path, url: str) -> dict[str, Counts]:
    async with running(home, url) as (product, client):
        counts = await _requests(laboratory, product, client)
        appends = await _appends(laboratory, product)
    async with running(home, url, roles=tuple(WORKER_ROLES)) as (product, client):
        return counts | await _workers(laboratory, product, client=client, appends=appends)


async def _requests(laboratory: Laboratory, product: Product, client: Client) -> dict[str, Counts]:
    """Count each request in an API without workers."""
    number = laboratory.number
    ids = [(await client.ask("POST", "/api/event/", body=event_body(next(number))))["id"] for _ in range(_WARM)]
    links = await _links(client)
    existing_key = client.request("POST", _SPEKE, body=speke_body("content-number"), kind="application/xml")

    def post() -> bytes:
        return client.request("POST", "/api/event/", body=event_body(next(number)))

    def patch() -> bytes:
        kind = "application/json-patch+json"
        return client.request("PATCH", f"/api/event/{ids[0]}", body=patch_body(next(number)), kind=kind)

    def get() -> bytes:
        return client.request("GET", f"/api/event/{ids[0]}")

    def listed() -> bytes:
        return client.request("GET", "/api/event/?pageSize=20")

    def linked() -> bytes:
        return client.request("POST", "/api/event/", body=event_body(next(number)) | links)

    def new_key() -> bytes:
        return client.request("POST", _SPEKE, body=speke_body(f"content-{next(number)}"), kind="application/xml")

    requests: dict[str, Callable[[], bytes]] = {
        "post": post,
        "patch": patch,
        "get": get,
        "list_of_20": listed,
        "post_with_five_links": linked,
        "speke_known_key": lambda: existing_key,
        "speke_new_key": new_key,
    }
    for _ in range(4):
        for make in requests.values():
            await client.send(make())
            client.check()
    await laboratory.loop.learn(_OBSERVED)
    counts: dict[str, Counts] = {}
    with laboratory.loop.clock_stopped():
        await laboratory.loop.rest()
        for name, make in requests.items():
            prepared = iter([make() for _ in range(2 * _REPEATS)])

            async def send(prepared: Iterator[bytes] = prepared) -> None:
                await client.send(next(prepared))
                client.check()

            counts[name] = await laboratory.repeated(send)
    return counts


async def _links(client: Client) -> dict[str, object]:
    """Make what an Event may link to, and return the members of a POST with five links."""
    made = {
        path: await client.ask("POST", f"/api/{path}/", body={"name": name})
        for path, name in (("room", "Studio 1"), ("eventtype", "Football"), ("category", "Sport"))
    }
    room, kind, category = (each.get("id") or each["Id"] for each in made.values())
    return {
        "roomId": room,
        "eventTypeId": kind,
        "categoryId": category,
        "tags": [{"name": "derby"}, {"name": "final"}],
    }


async def _append(laboratory: Laboratory, product: Product) -> None:
    """Append some Events in one statement."""
    commands = [event_command(next(laboratory.number)) for _ in range(_TOGETHER)]
    invocation = Invocation.by("budgets")
    await asyncio.gather(*(product.core.executor.execute(command, invocation=invocation) for command in commands))


async def _appends(laboratory: Laboratory, product: Product) -> Counts:
    """Count one append without workers."""
    with laboratory.loop.clock_stopped():

        async def append() -> None:
            await _append(laboratory, product)

        return await laboratory.repeated(append)


async def _workers(laboratory: Laboratory, product: Product, *, client: Client, appends: Counts) -> dict[str, Counts]:
    """Count events, jobs and idleness in a product with all workers."""
    loop, number = laboratory.loop, laboratory.number
    invoked = {"client": client.name}

    async def job() -> int:
        return int((await client.ask("POST", "/engine/job", body=job_body(next(number), NOOP.name), more=invoked))["id"])

    def is_completed(job: int) -> bool:
        asked = laboratory.server.connection.execute("SELECT FROM job_view WHERE id = %s AND state = 2", (job,))
        return bool(asked.rowcount)

    async def jobs() -> None:
        begun = loop.time()
        for _ in range(_JOBS):
            started, completed = await job(), False
            while not completed:
                await loop.elapse(_PACE / 10)
                with laboratory.calls:
                    completed = is_completed(started)
        await loop.elapse(begun + _WINDOW - loop.time())

    async def stream() -> None:
        begun = loop.time()
        for _ in range(_APPENDS):
            await _append(laboratory, product)
            await loop.elapse(_PACE)
        await loop.elapse(begun + _WINDOW - loop.time())

    async def idle() -> None:
        await loop.elapse(_WINDOW)

    def last_renewal() -> object:
        return laboratory.server.connection.execute("SELECT max(seen_at) FROM consumer_members").fetchone()

    async def between_renewals(action: Action) -> Counts:
        """Count an action that begins between two renewals, so that each window has the same number of them."""
        before = last_renewal()
        while last_renewal() == before:
            await loop.elapse(_PACE)
        await loop.elapse(LEASE / 6)
        return await laboratory.counts(action)

    for _ in range(_WARM_JOBS):
        started = await job()
        while not is_completed(started):  # noqa: ASYNC110 - another process completes it
            await asyncio.sleep(0.02)
        await _append(laboratory, product)
    await loop.learn(_OBSERVED)
    with loop.clock_stopped(moves=True):
        of_jobs = await between_renewals(jobs)
        of_events = await between_renewals(stream)
        of_idleness = await between_renewals(idle)
    return {
        "event_in_all_followers": of_events.without(of_idleness).without(appends.times(_APPENDS)).times(1 / (_APPENDS * _TOGETHER)),
        "job": of_jobs.without(of_idleness).times(1 / _JOBS),
        "ten_idle_seconds": of_idleness.times(10 / _WINDOW),
    }
