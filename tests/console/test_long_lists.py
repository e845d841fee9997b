"""Lists of 10,000 jobs and Events in the console: they are scrolled to their last row, which is read when it is near."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from playwright.async_api import Page, expect

from tests.support.product import Product
from workers.adapters.embedded_postgres import EmbeddedPostgres

MANY = 10_000
_JOBS = """
INSERT INTO job_view (id, version, client, workflow, content_id, state, failed, priority, created_at, updated_at, parameters,
    search_text, reason, next_queue, transaction_id, shard)
SELECT n, 1, 'many', 'many', 'many', 2, false, 5, timestamptz '2031-01-01Z' + n * interval '1 s', now(),
    json_build_object('content_id', 'many-' || n)::text, 'many', '', '', '', 0 FROM generate_series(1000001, %s::bigint) AS n
"""
_EVENTS = """
INSERT INTO event_view (id, version, deleted, state, title, scheduled_start, date_created, date_modified, shown_version,
    search_text, document)
SELECT md5(n::text)::uuid, 1, false, 0, 'Many ' || n, start, now(), now(), 1, 'many ' || n,
    json_build_object('title', 'Many ' || n, 'state', 0, 'scheduled_start', start)::text
FROM (SELECT n, timestamptz '2041-01-01Z' + n * interval '1 min' AS start FROM generate_series(1, %s::bigint) AS n) AS made
"""


@pytest.fixture(scope="module")
def filled(product: Product) -> Iterator[None]:
    """Rows of the views alone: other tests of the product do not meet them in its log."""
    server = EmbeddedPostgres(product.home)
    with closing(psycopg.connect(server.attach(), autocommit=True)) as connection:
        connection.execute(_JOBS, (1_000_000 + MANY,))
        connection.execute(_EVENTS, (MANY,))
        yield
        connection.execute("DELETE FROM job_view WHERE client = 'many'")
        connection.execute("DELETE FROM event_view WHERE title LIKE 'Many %'")


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "first", "last"),
    [
        ("jobs?state=total&client=many", f"many-{1_000_000 + MANY}", "many-1000001"),
        ("events?from=2041-01-01&order=asc", "Many 1", f"Many {MANY}"),
    ],
)
async def test_a_list_of_ten_thousand_is_scrolled_to_its_end(
    signed_in: Page, product: Product, filled: None, address: str, first: str, last: str
) -> None:
    await signed_in.goto(f"{product.address}/console/{address}")
    table = signed_in.locator(".table-frame")
    await expect(table.get_by_text(first, exact=False).first).to_be_visible()
    for _ in range(2 * MANY // 200):
        rows = await table.locator("table").get_attribute("aria-rowcount")
        await table.evaluate("frame => frame.scrollTo(0, frame.scrollHeight)")
        if await table.get_by_text(last, exact=True).or_(table.get_by_text(f" {last}")).count():
            break
        if int(rows or 0) <= MANY:
            await expect(table.locator("table")).not_to_have_attribute("aria-rowcount", rows or "", timeout=60_000)
    await expect(table.get_by_text(last).first).to_be_visible()
    assert await table.locator("tbody tr").count() < 200, "only what is seen is drawn"
