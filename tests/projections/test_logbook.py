"""The log store: entries are added and found, never changed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from api.wiring.core import Core
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed
from projections.kernel.database.database import APP_ROLE
from projections.log.idempotency import IdempotencyRecords
from projections.log_store.log_store import Level, Logbook, LogEntry, LogFilter
from tests.support.clock import NOON, HandClock

SECOND = timedelta(seconds=1)


@pytest.fixture
async def logbook(inner: Core) -> Logbook:
    return Logbook(inner.database, inner.clock, machine="this-host")


@pytest.fixture
async def filled(logbook: Logbook, clock: HandClock) -> Logbook:
    """Entries 1 to 7, a second apart, of levels Trace to Off; the odd ones about `a`."""
    for level in Level:
        await logbook.add(level, level.name, username="desk", subject="a" if level % 2 == 0 else None)
        clock.forward(seconds=1)
    return logbook


async def ids(logbook: Logbook, **parts: Any) -> tuple[list[int], int]:
    page = await logbook.page(LogFilter(**parts))
    return [(entry.id + 1) // 2 for entry in page.results], page.total


async def test_an_added_entry_is_found(logbook: Logbook, clock: HandClock) -> None:
    clock.forward(milliseconds=7)
    added = await logbook.add(
        Level.FATAL,
        "'; DROP TABLE logbook; --",
        username="desk",
        exception="boom",
        stack_trace="at x\nat y",
        logger="l",
        machine_name="m",
        tags=["a", "b,c", '"', ""],
    )
    assert added == LogEntry(
        id=1,
        recorded_at=NOON + timedelta(milliseconds=7),
        level=Level.FATAL,
        message="'; DROP TABLE logbook; --",
        username="desk",
        exception="boom",
        stack_trace="at x\nat y",
        logger="l",
        machine_name="m",
    )
    assert await logbook.find(1) == added
    assert (await logbook.page(LogFilter())).results == [added]
    assert await logbook.find(2) is None


async def test_tags_and_subject_are_kept(inner: Core, logbook: Logbook) -> None:
    await logbook.add(Level.INFO, "x", username="desk", subject="s", tags=["a", "b,c", '"', ""])
    await logbook.add(Level.INFO, "x", username="desk")
    rows = await inner.database.rows("SELECT subject, tags FROM logbook ORDER BY id")
    assert rows == [("s", ["a", "b,c", '"', ""]), (None, [])]


async def test_an_entry_of_the_service_has_its_host(logbook: Logbook) -> None:
    entry = await logbook.note(Level.WARN, "left as it was", subject="a")
    assert (entry.username, entry.logger, entry.machine_name) == ("system", "medialedger", "this-host")
    assert (await logbook.page(LogFilter(subject="a"))).results == [entry]


@pytest.mark.parametrize(
    ("parts", "numbers", "total"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7], 7),
        ({"descending": True}, [7, 6, 5, 4, 3, 2, 1], 7),
        ({"start": 2, "size": 3}, [3, 4, 5], 7),
        ({"start": 2, "size": 3, "descending": True}, [5, 4, 3], 7),
        ({"start": 6, "size": 3}, [7], 7),
        ({"start": 7}, [], 7),
        ({"start": 2**63 - 1}, [], 7),
        ({"start": 2**63 - 1, "size": 1000}, [], 7),
        ({"levels": (Level.WARN, Level.TRACE)}, [1, 4], 2),
        ({"levels": tuple(Level)}, [1, 2, 3, 4, 5, 6, 7], 7),
        ({"subject": "a"}, [1, 3, 5, 7], 4),
        ({"subject": "a", "levels": (Level.OFF,), "start": 0}, [7], 1),
        ({"subject": "A"}, [], 0),
        ({"recorded_from": NOON + 2 * SECOND}, [3, 4, 5, 6, 7], 5),
        ({"recorded_to": NOON + 2 * SECOND}, [1, 2, 3], 3),
        ({"recorded_from": NOON + 2 * SECOND, "recorded_to": NOON + 2 * SECOND}, [3], 1),
        ({"recorded_from": NOON + 3 * SECOND, "recorded_to": NOON + 2 * SECOND}, [], 0),
    ],
)
async def test_a_page_has_the_selected_entries(filled: Logbook, parts: dict[str, Any], numbers: list[int], total: int) -> None:
    for _ in range(7):  # prepared, and planned for any parameters, after a few times
        assert await ids(filled, **parts) == (numbers, total)


async def test_a_page_has_1000_entries_at_most(filled: Logbook) -> None:
    assert [(await filled.page(LogFilter(size=size))).size for size in (1, 1000, 1001, 2**63)] == [1, 1000, 1000, 1000]


async def test_the_role_of_the_application_can_only_add_and_read(database_url: str, filled: Logbook) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"SET ROLE {APP_ROLE}".encode())
        for statement in ("UPDATE logbook SET message = ''", "DELETE FROM logbook", "TRUNCATE logbook", "DROP TABLE logbook"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
        row = connection.execute("SELECT count(*) FROM logbook").fetchone()
    assert row == (7,)


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ("level = ANY(ARRAY[4]::smallint[]) ORDER BY id LIMIT 20", "_level_id_idx"),
        ("subject = 'a' ORDER BY id LIMIT 20", "_subject_id_idx"),
        ("true ORDER BY id DESC LIMIT 20 OFFSET 40", "_pkey"),
    ],
)
async def test_every_read_has_its_index(inner: Core, logbook: Logbook, database_url: str, where: str, index: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO logbook (recorded_at, level, message, username, subject)"
            " SELECT now() + n * interval '1 s', (n % 3)::smallint, 'x', 'desk', 's' || n FROM generate_series(1, 30000) n"
        )
        connection.execute("VACUUM ANALYZE logbook")
        plan = connection.execute(f"EXPLAIN SELECT * FROM logbook WHERE {where}".encode()).fetchall()
    assert index in "\n".join(line for (line,) in plan)


async def test_an_entry_and_its_idempotency_key_are_stored_together_or_not_at_all(logbook: Logbook, inner: Core) -> None:
    """Two processes that are sent the same request at once write it down once."""

    key = IdempotencyKey("studio", "k", b"mark", 201)
    twice = (logbook.add(Level.INFO, "once", username="studio", idempotency=key) for _ in range(2))
    written, refused = sorted(
        await asyncio.gather(*twice, return_exceptions=True), key=lambda result: isinstance(result, Exception)
    )
    assert isinstance(refused, IdempotencyKeyUsed)
    assert isinstance(written, LogEntry)
    assert [entry.id for entry in (await logbook.page(LogFilter())).results] == [written.id]
    record = await IdempotencyRecords(inner.database, inner.streams).find("studio", "k")
    assert record is not None
    assert (record.of, record.result) == (key, {"id": written.id})
