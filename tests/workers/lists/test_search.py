"""The search indexes, filled by the consumer while Events are written and searched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from projections.consumers.leases import ShardLeases
from projections.event.filters import EventFilter
from projections.event.queries import EventQueries
from projections.event.view import EVENT_SEARCH
from projections.job.view import JOB_SEARCH
from projections.kernel.sql.search import CONSUMER, SHORTEST, grams
from projections.log import reader
from tests.projections.job.jobs_made import accept, started
from tests.support.feeding import do, event
from tests.workers.consumed import consumed
from tests.workers.webhook.sender.sending import until
from workers.lists.search import SearchIndexer


@asynccontextmanager
async def indexing(inner: Core) -> AsyncIterator[None]:
    indexer = SearchIndexer(inner.database, (EVENT_SEARCH, JOB_SEARCH))
    async with consumed(inner, indexer, ShardLeases(inner.database, CONSUMER, shards=1, member=uuid4())):
        yield


async def caught_up(inner: Core) -> None:
    head = await reader.head(inner.database)

    async def reached() -> bool:
        row = await inner.database.row("SELECT position FROM consumer_shards WHERE consumer = %s", (CONSUMER,))
        return row is not None and row[0] >= head

    await until(reached)


async def search(inner: Core, term: str) -> list[int]:
    return [row.id.int for row in (await EventQueries(inner.database).page(EventFilter(search=term))).results]


async def test_a_new_text_is_found_before_and_after_it_is_indexed(inner: Core) -> None:
    async with indexing(inner):
        for number in range(1, 40):
            await event(inner, number, title=f"Final {number}x")
            assert await search(inner, f"INAL {number}X") == [number]
            await do(inner, AddOrUpdateEvent(UUID(int=number), {"title": f"Replay {number}x"}))
            assert await search(inner, f"final {number}x") == []
        await caught_up(inner)
    assert await inner.database.rows("SELECT count(*) FROM event_search") == [(39,)]
    assert await search(inner, "replay 7x") == [7]


async def test_a_parked_event_is_found(inner: Core) -> None:
    key = await event(inner, 1, title="Never indexed")
    await inner.database.execute("INSERT INTO consumer_shards (consumer, shard, position) VALUES (%s, 0, 1)", (CONSUMER,))
    assert await search(inner, "never") == []
    await inner.database.execute(
        "INSERT INTO parked_records (consumer, position, stream, topic, error) VALUES (%s, 1, %s, 'event.registered', 'x')",
        (CONSUMER, f"event:{key}"),
    )
    assert await search(inner, "never") == [1]


async def test_a_text_with_very_many_sequences_is_found_with_every_term(inner: Core) -> None:
    await event(inner, 1, description="".join(map(chr, range(0x4E00, 0x4E00 + 12_000))))
    async with indexing(inner):
        await caught_up(inner)
    assert await inner.database.rows("SELECT grams FROM event_search") == [(None,)]
    assert await search(inner, "".join(map(chr, range(0x4E00, 0x4E00 + 11_000)))) == [1]
    assert await search(inner, "\u4e10\u4e11\u4e12") == [1]
    assert await search(inner, "\u4e10\u4e11\u4e13") == []


async def test_a_job_is_indexed_once(inner: Core) -> None:
    await accept(inner, 1, content_id="Clip")
    await started(inner, 2, content_id="Clip")
    async with indexing(inner):
        await caught_up(inner)
    rows = await inner.database.rows("SELECT id, grams FROM job_search ORDER BY id")
    assert [(key, set(retained)) for key, retained in rows] == [(1, grams("clip\x1fany")), (2, grams("clip\x1fany"))]


class TestCandidates:
    async def test_short_terms_many_results_and_a_consumer_far_behind_are_left_to_a_scan(self, inner: Core) -> None:
        for number in (1, 2, 3):
            await event(inner, number, title=f"Final {number}")
        async with indexing(inner):
            await caught_up(inner)
        assert await EVENT_SEARCH.candidates(inner.database, "final"[: SHORTEST - 1], most=10) is None
        assert await EVENT_SEARCH.candidates(inner.database, "final", most=3) is not None
        assert await EVENT_SEARCH.candidates(inner.database, "final", most=2) is None
        await inner.database.execute("UPDATE consumer_shards SET position = -10001 WHERE consumer = %s", (CONSUMER,))
        assert await EVENT_SEARCH.candidates(inner.database, "final", most=3) is None


def test_sequences_are_of_characters_and_fit_an_integer() -> None:
    assert grams("ab") == set()
    assert len(grams("東京都大")) == 2
    assert grams("abc") == grams("abcabc"[:3])
    assert all(-(2**31) <= number < 2**31 for number in grams("".join(map(chr, range(32, 500)))))
    assert 10_000 < len(grams("".join(map(chr, range(0x4E00, 0x4E00 + 50_000))))) < 20_000, "too many are not counted to their end"
