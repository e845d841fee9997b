"""The job engine as it runs in production: worker processes of the command line on one database, and jobs submitted here or over
HTTP.

The workflow is one of `tests/support/plugins`, which all other processes find as an installed plugin.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import uvloop

from api.cli.run.limits import tune_garbage_collector
from api.wiring.core import Core, core
from bench import load
from bench.ground import Ground, Served
from bench.serve import MASTER_KEY, PLUGINS
from domain.job.aggregate import Job
from domain.job.values import Submission
from domain.kernel.cause import Cause
from domain.kernel.ports import Invocation
from domain.record.kinds.setting import Setting
from domain.record.record import RegisterRecord
from projections.job.queue import JobNumberSequence
from projections.log.reader import HEAD
from tests.support.plugins.engine_probes import NOOP
from workers.job.registry import Registry

CLIENT = "admin"
_MOST_WAITING = 10_000_000
"""The limit of waiting jobs, as an admin may set it: a benchmark queues as many jobs beforehand as the default limit allows."""
_REPOSITORY = Path(__file__).parents[1]
_ONCE = ("job.accepted", "job.completed", "job.started", "job.task_completed", "job.task_started")
"""The events of every completed job, by name."""
_SEEN = """
SELECT topic, count(*), count(DISTINCT originator_id), extract(epoch FROM min(recorded_at))::float8,
    extract(epoch FROM max(recorded_at))::float8
FROM events WHERE position > %s AND originator_id LIKE 'job:%%' GROUP BY topic ORDER BY topic
"""


class Engine:
    """A job engine with a database of its own. Jobs are submitted through the executor of this process, by several coroutines at
    a time."""

    def __init__(self, url: str, *, clients: int, max_jobs: int) -> None:
        self.url = url
        self._clients = clients
        uvloop.run(_set_limits(url, {"max_jobs": max_jobs, "max_waiting_jobs": _MOST_WAITING}))

    def put(self, many: int) -> None:
        uvloop.run(_accept(self.url, many, clients=self._clients))

    def ended(self) -> int:
        return int(self._rows("SELECT count(*) FROM job_view WHERE state = 2 AND NOT failed")[0][0])

    def mark(self) -> int:
        return int(self._rows(HEAD)[0][0])

    def took(self, mark: int, many: int) -> float:
        """Return the seconds from the first acceptance after the mark to the last completion, as recorded. Checks that each job
        ran once."""
        seen = {topic: facts for topic, *facts in self._rows(_SEEN, mark)}
        counted = {topic: facts[:2] for topic, facts in seen.items()}
        if counted != {topic: [many, many] for topic in _ONCE}:
            raise RuntimeError(f"of {many} jobs the log has (events, jobs): {counted}")
        return float(seen["job.completed"][3] - seen["job.accepted"][2])

    def _rows(self, query: str, *values: int) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode(), values or None).fetchall()


class EngineOverHttp(Engine):
    """A job engine whose jobs are posted to a server by as many HTTP clients."""

    def __init__(self, url: str, server: Served, *, clients: int, max_jobs: int) -> None:
        super().__init__(url, clients=clients, max_jobs=max_jobs)
        self._server = server

    def put(self, many: int) -> None:
        seen = load.run(load.Job(self._server.port, [posted(self._server)], self._clients, 0, total=many))
        if seen.refused:
            raise RuntimeError(f"not all jobs were accepted: {seen.statuses}")


def job_body(content_id: str) -> dict[str, dict[str, str]]:
    return {"job": {"workflow": NOOP.name}, "parameters": {"content_id": content_id}}


def posted(server: Served) -> str:
    """Return a request that submits a job; each is for other content."""
    body = json.dumps(job_body(f"match-{load.MARK}"))
    return server.request("POST", "/engine/job", body=body, more={"client": CLIENT})


@contextmanager
def workers(ground: Ground, url: str, *, steps: int) -> Iterator[None]:
    """Run one process that admits jobs and runs their steps, `steps` at a time."""
    key = ground.home / "master.key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(MASTER_KEY)
    given = {"HOME": ground.home, "DATABASE_URL": url, "STEPS": steps, "LOG_LEVEL": "WARNING"}
    environment = {f"MEDIALEDGER_{name}": str(value) for name, value in given.items()}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (_REPOSITORY, PLUGINS)))
    with ground.process("workers", ["api.cli.main", "workers", "controller", "work"], environment=environment):
        yield


@asynccontextmanager
async def _core(url: str) -> AsyncIterator[Core]:
    wired = core(url, role=None)
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


async def _set_limits(url: str, limits: Mapping[str, int]) -> None:
    async with _core(url) as wired:
        for name, limit in limits.items():
            values = {"client": CLIENT, "name": name, "setting": limit}
            await wired.executor.execute(
                RegisterRecord(Setting.key_of(CLIENT, name), Setting, values), invocation=Invocation.by(CLIENT)
            )


async def _accept(url: str, many: int, *, clients: int) -> None:
    """Do the work of POST /engine/job without HTTP."""
    registry, remaining = Registry([NOOP]), iter(range(many))
    async with _core(url) as wired:
        tune_garbage_collector()
        numbers, cause = JobNumberSequence(wired.database), Cause.by(CLIENT)

        async def some(contents: Iterable[int]) -> None:
            for content in contents:
                parameters = {"content_id": f"match-{content}"}
                workflow, checked = registry.checked(NOOP.name, parameters)
                submission = Submission(
                    client=CLIENT,
                    workflow=workflow.name,
                    content_id=checked.content_id,
                    parameters=parameters,
                    tasks=workflow.graph(),
                )
                await wired.executor.execute(Job.accept.on(await numbers.draw(), submission), invocation=Invocation(cause))

        await asyncio.gather(*(some(remaining) for _ in range(clients)))
