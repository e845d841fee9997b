"""Reads that take long, in parallel: writes, single reads and authentication go on concurrent them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import psycopg
import pytest

from api.wiring.core import Core
from projections.kernel.database.database import Database
from tests.api.asking import add
from tests.support.application import introduce

READERS = 9
WAITING = """
SELECT count(*) >= %s FROM pg_stat_activity
WHERE application_name = 'medialedger' AND wait_event_type = 'Lock' AND now() - query_start >= %s * interval '1 second'
"""


@asynccontextmanager
async def locked(url: str, table: str) -> AsyncIterator[None]:
    """Every query of this table waits until the end."""
    async with await psycopg.AsyncConnection.connect(url) as owner, owner.transaction():
        await owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


async def stuck(url: str, queries: int, *, seconds: float = 0.0) -> None:
    async with Database(url, size=1) as observer, asyncio.timeout(60):
        while await observer.row(WAITING, (queries, seconds)) != (True,):
            pass


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("/engine/jobs?search=zzzz", "job_view"),
        ("/engine/dashboard", "job_view"),
        ("/api/contentkey/?contentId=film", "content_key_view"),
        ("/api/log/", "logbook"),
    ],
)
async def test_nine_heavy_reads_take_no_connection_of_others(
    http: httpx.AsyncClient, inner: Core, database_url: str, path: str, table: str
) -> None:
    key = (await add(http))["id"]
    other = {"API-KEY": await introduce(inner, "other", "viewer")}
    async with locked(database_url, table):
        readers = [asyncio.create_task(http.get(path)) for _ in range(READERS)]
        await stuck(database_url, 2)  # half of the connections for lists
        inner.directory.invalidate()  # the next request authenticates from the database
        added = await http.post("/api/event/", json={"title": "concurrent them"})
        assert added.status_code == 200
        assert (await http.get(f"/api/event/{key}")).status_code == 200
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.get("/api/event/", headers=other)).json()["totalCount"] == 2, "another client's list does not wait"
    answers = await asyncio.gather(*readers)
    assert {answer.status_code for answer in answers} <= {200, 204}


async def test_a_client_whose_lists_took_long_waits_with_the_next_one_while_there_are_others(
    http: httpx.AsyncClient, inner: Core, database_url: str
) -> None:
    other = {"API-KEY": await introduce(inner, "other", "viewer")}

    async def waits(*, concurrent: bool) -> int:
        async with locked(database_url, "job_view"):
            reading = asyncio.create_task(http.get("/engine/jobs?search=zzzz"))
            await stuck(database_url, 1, seconds=0.4)
        assert (await reading).status_code == 200
        before = inner.database.lists.stats()["requests_queued"]
        if concurrent:
            assert (await http.get("/api/room/", headers=other)).status_code == 200
        assert (await http.get("/engine/jobs?search=zzzz")).status_code == 200
        return inner.database.lists.stats()["requests_queued"] - before

    assert await waits(concurrent=False) == 0
    assert await waits(concurrent=True) == 1


async def test_a_list_that_takes_too_long_is_503_with_retry_after(http: httpx.AsyncClient, database_url: str) -> None:
    async with locked(database_url, "job_view"):
        answer = await http.get("/engine/jobs?search=zzzz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json() == {"error": "the database took too long to answer"}
