"""Procrastinate, a usual job queue on PostgreSQL: no-op jobs deferred one by one, and its worker process.

It is used as its documentation says: the psycopg connector, async tasks, LISTEN/NOTIFY, finished jobs retained. It runs under
uvloop, as the product does, and without log lines. In a process of its own (`python -m bench.procrastinate_twin CONCURRENCY`) it is
a worker; the address of the database comes on standard input, because it holds a password.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager

import psycopg
import uvloop
from procrastinate import App, PsycopgConnector

from api.cli.run.limits import tune_garbage_collector
from bench.ground import Ground

_POOL = 10
_TASK = "nothing"
_SEEN = """
SELECT count(*) FILTER (WHERE type = 'started'), count(*) FILTER (WHERE type = 'succeeded'),
    extract(epoch FROM max(at) FILTER (WHERE type = 'succeeded') - min(at) FILTER (WHERE type = 'deferred'))::float8
FROM procrastinate_events WHERE id > %s
"""


def _app(url: str) -> App:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=_POOL, max_size=_POOL))
    app.task(name=_TASK)(_nothing)
    return app


async def _nothing(content_id: str) -> None:
    """Do nothing: the rest is the cost of the engine."""


class Procrastinate:
    """A database with Procrastinate's tables. Jobs are deferred in this process, by several coroutines at a time."""

    def __init__(self, url: str, *, clients: int) -> None:
        self.url = url
        self._clients = clients
        uvloop.run(_create_tables(url))

    def put(self, many: int) -> None:
        uvloop.run(_defer(self.url, many, clients=self._clients))

    def ended(self) -> int:
        return int(self._row("SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")[0])

    def mark(self) -> int:
        return int(self._row("SELECT max(id) FROM procrastinate_events")[0])

    def took(self, mark: int, many: int) -> float:
        """Return the seconds from the first deferral after the mark to the last success, by the database's clock."""
        started, succeeded, seconds = self._row(_SEEN, mark)
        if (started, succeeded) != (many, many):
            raise RuntimeError(f"of {many} jobs {started} were started and {succeeded} succeeded")
        return float(seconds)

    def _row(self, query: str, *values: int) -> tuple[float, ...]:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(query.encode(), values).fetchone()
            assert row is not None, "an aggregate has a row"
            return row


def worker(ground: Ground, url: str, *, concurrency: int) -> AbstractContextManager[object]:
    """Run a worker process with `concurrency` jobs at a time in its event loop."""
    return ground.process("procrastinate", ["bench.procrastinate_twin", str(concurrency)], input_line=url)


async def _create_tables(url: str) -> None:
    async with _app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def _defer(url: str, many: int, *, clients: int) -> None:
    async with _app(url).open_async() as app:
        tune_garbage_collector()
        task, remaining = app.tasks[_TASK], iter(range(many))

        async def some(numbers: Iterable[int]) -> None:
            for number in numbers:
                await task.defer_async(content_id=f"match-{number}")

        await asyncio.gather(*(some(remaining) for _ in range(clients)))


async def _work(url: str, concurrency: int) -> None:
    async with _app(url).open_async() as app:
        tune_garbage_collector()
        print("works", flush=True)
        await app.run_worker_async(concurrency=concurrency)


def main() -> None:
    logging.disable(logging.WARNING)
    uvloop.run(_work(sys.stdin.readline().strip(), int(sys.argv[1])))


if __name__ == "__main__":
    main()
