"""Search: with any texts and terms, and wherever the consumer stands, the index finds what a scan finds."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from api.wiring.core import Core
from projections.event.filters import EventFilter, list_query
from projections.event.queries import EventQueries
from projections.event.view import EVENT_SEARCH
from projections.job.queries import JobFilter, JobQueries
from projections.job.view import JOB_SEARCH
from projections.kernel.database.page import Window
from projections.kernel.sql.search import CONSUMER
from projections.log import reader
from tests.projections.job.jobs_made import accept
from tests.properties.test_views import LIVE, afresh
from tests.support.feeding import event
from workers.lists.search import SearchIndexer

texts = st.text(alphabet="aAbBİIıßẞσΣς%_\\ '東京都大\x1fé\u0301😀ﬃ", max_size=12)
described = st.lists(st.tuples(st.integers(1, 4), texts, st.none() | texts), min_size=1, max_size=8)


async def indexed(inner: Core, *, through: int) -> None:
    """Run the consumer up to a position of the log."""
    indexer = SearchIndexer(inner.database, (EVENT_SEARCH, JOB_SEARCH))
    records = [record for record in await reader.read(inner.database, 0) if record.position <= through]
    effects = await indexer.prepare(records)
    async with inner.database.connection() as connection, connection.transaction():
        if effects is not None:
            await indexer.write(connection, effects)
        await connection.execute(
            "INSERT INTO consumer_shards (consumer, shard, position) VALUES (%s, 0, %s)"
            " ON CONFLICT (consumer, shard) DO UPDATE SET position = excluded.position",
            (CONSUMER, through),
        )


def terms(given: list[str], data: st.DataObject) -> list[str]:
    """Parts of the texts, and any others."""
    text = data.draw(st.sampled_from(given))
    at = data.draw(st.integers(0, len(text)))
    return [text[at : at + data.draw(st.integers(1, 6))] or "a", data.draw(texts.filter(bool)), text or "a"]


async def scanned(inner: Core, filter_: EventFilter) -> list[UUID]:
    query = list_query(filter_, {})
    return [row[0] for row in await inner.database.rows(query.page, query.parameters)]


@LIVE
@example(before=[(1, "İstanbul", None), (2, "ΟΔΟΣ", "straße")], after=[(1, "100%_\\", "東京都")], ahead=True, data=None)
@given(before=described, after=described, ahead=st.booleans(), data=st.data())
async def test_the_index_finds_the_events_that_a_scan_finds(
    inner: Core,
    before: list[tuple[int, str, str | None]],
    after: list[tuple[int, str, str | None]],
    ahead: bool,
    data: st.DataObject | None,
) -> None:
    inner.executor = afresh(inner)
    for number, title, description in before:
        await event(inner, number, title=title, description=description)
    checkpoint = await reader.head(inner.database)
    if not ahead:
        await indexed(inner, through=checkpoint)
    for number, title, description in after:
        await event(inner, number, title=title, description=description)
    if ahead:  # the consumer read the views when they were newer than its checkpoint
        await indexed(inner, through=checkpoint)
    given = [text for _, *of_event in (*before, *after) for text in of_event if text is not None]
    for term in [*given, "000"] if data is None else terms(given, data):
        for more in ({}, {"deleted": True}, {"no_scheduled_end": True}):
            filter_ = EventFilter(search=term, window=Window(size=1000), **more)  # type: ignore[arg-type]
            expected = await scanned(inner, filter_)
            page = await EventQueries(inner.database).page(filter_)
            assert ([row.id for row in page.results], page.total) == (expected, len(expected))
            if len(term.lower()) >= 3:
                candidates = await EVENT_SEARCH.candidates(inner.database, term.lower(), most=100)
                assert candidates is not None
                narrowed = list_query(filter_, {}, candidates=candidates)
                rows = await inner.database.rows(narrowed.page, narrowed.parameters)
                assert [row[0] for row in rows] == expected


@LIVE
@given(before=st.lists(texts, max_size=4), after=st.lists(texts, min_size=1, max_size=4), data=st.data())
async def test_the_index_finds_the_jobs_that_a_scan_finds(
    inner: Core, before: list[str], after: list[str], data: st.DataObject
) -> None:
    inner.executor = afresh(inner)
    for number, text in enumerate(before, start=1):
        await accept(inner, number, content_id=f"c{text}", parameters={"a": {"b": [text]}})
    await indexed(inner, through=await reader.head(inner.database))
    for number, text in enumerate(after, start=len(before) + 1):
        await accept(inner, number, content_id=f"c{text}", parameters={"a": text})
    for term in terms([*before, *after], data):
        rows: list[Any] = await inner.database.rows("SELECT id, search_text FROM job_view ORDER BY id DESC")
        expected = [number for number, text in rows if term.lower() in text]
        assert [job.id for job in (await JobQueries(inner.database).search(JobFilter(limit=100, search=term))).rows] == expected
