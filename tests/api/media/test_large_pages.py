"""Pages of large entries: bounded in bytes, and one after another."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from domain.kernel.errors import Unavailable
from projections.kernel.database.database import Database, LargeReads
from projections.kernel.database.page import LARGEST_CONTENT, ORDINARY, PageTooLarge
from tests.api.asking import add

LARGE = 1_000_000
PAGE = "SELECT n, repeat('x', %(each)s) AS text FROM generate_series(1, %(rows)s) AS n ORDER BY n DESC"
COUNT = "SELECT 7"


async def test_a_page_of_large_events_is_refused_and_a_smaller_one_given(http: httpx.AsyncClient) -> None:
    many = LARGEST_CONTENT // LARGE + 1
    for number in range(many):
        await add(http, description="x" * LARGE, title=f"{number}")
    refused = await http.get("/api/event/", params={"pageSize": 1000})
    assert refused.status_code == 400
    assert refused.json()["errors"] == [
        {
            "field": "pageSize",
            "message": f"the page has {many * LARGE // 2**20 + 1} MiB, the limit is 24 MiB; request fewer entries",
        }
    ]
    given = await http.get("/api/event/", params={"pageSize": many - 2})
    assert (given.status_code, given.json()["totalCount"], len(given.json()["results"])) == (200, many, many - 2)
    ordinary = await http.get("/api/event/", params={"pageSize": 2})
    assert [event["title"] for event in ordinary.json()["results"]] == [event["title"] for event in given.json()["results"][:2]]


async def test_a_page_of_large_log_entries_is_refused(http: httpx.AsyncClient) -> None:
    for _ in range(LARGEST_CONTENT // LARGE + 1):
        added = await http.post("/api/log/", json={"message": "x" * LARGE, "level": 2})
        assert added.status_code == 201, added.text
    assert (await http.get("/api/log/", params={"pageSize": 1000})).status_code == 400
    assert len((await http.get("/api/log/", params={"pageSize": 3})).json()["results"]) == 3


async def test_a_large_list_without_pages_is_sent_whole_while_it_is_read(http: httpx.AsyncClient) -> None:
    many = LARGEST_CONTENT // LARGE + 1
    for number in range(many):
        body = {"name": f"{number}", "configurationJson": json.dumps({"text": "x" * LARGE})}
        added = await http.post("/api/channel/", json=body)
        assert added.status_code == 200
    async with http.stream("GET", "/api/channel/") as answer:
        whole = json.loads(await answer.aread())
    assert (answer.status_code, "content-length" in answer.headers) == (200, False)
    assert [entry["name"] for entry in whole] == sorted(map(str, range(many)))
    assert "content-length" in (await http.get("/api/room/")).headers


@pytest.mark.parametrize(("rows", "each"), [(0, 1), (3, 1), (3, ORDINARY // 3), (4, ORDINARY // 3), (3, LARGEST_CONTENT // 3)])
async def test_a_page_within_the_bound_is_whole_and_in_its_order(database_url: str, rows: int, each: int) -> None:
    async with Database(database_url, size=1) as database:
        result, total = await database.lists.page(PAGE, COUNT, content=("text",), parameters={"rows": rows, "each": each})
    assert [(n, len(text)) for n, text in result] == [(n, each) for n in range(rows, 0, -1)]
    assert total == 7


async def test_a_page_beyond_the_bound_is_not_read(database_url: str) -> None:
    async with Database(database_url, size=1) as database:
        with pytest.raises(PageTooLarge):
            await database.lists.page(PAGE, COUNT, content=("text",), parameters={"rows": 4, "each": LARGEST_CONTENT // 3})


async def test_large_reads_follow_one_another() -> None:
    reads, begun, end = LargeReads(), list[int](), asyncio.Event()

    async def read(number: int) -> None:
        await reads.wait()
        await reads.wait()  # a second one in the same task
        begun.append(number)
        await end.wait()

    first = asyncio.create_task(read(1))
    await asyncio.sleep(0)
    others = [asyncio.create_task(read(number)) for number in (2, 3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == [1]
    first.cancel()
    end.set()
    await asyncio.gather(*others)
    assert begun == [1, 2, 3]


async def test_a_large_read_that_waits_too_long_gives_503() -> None:
    reads = LargeReads(patience=0.01)
    await reads.wait()
    with pytest.raises(Unavailable, match="too many large lists"):
        await asyncio.create_task(reads.wait())
