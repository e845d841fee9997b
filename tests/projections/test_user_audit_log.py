"""The event log as entries of the log store: positions, spans of time, and changes of clients."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.wiring.core import Core
from projections.audit.user_audit_log import UserAuditLog
from projections.kernel.database.page import Page
from projections.log.reader import read
from projections.log_store.log_store import Level, LogEntry, LogFilter
from tests.support.application import introduce
from tests.support.feeding import as_superuser, event, room

TICK = timedelta(milliseconds=1)
FAR = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC))


@pytest.fixture
async def audit_log(inner: Core) -> UserAuditLog:
    """Positions 1 and 5 to 6 are about rooms, 2 to 3 and 7 to 8 about clients, 4 about an Event."""
    await room(inner, 1, "Hall")
    await introduce(inner, "desk", "viewer")
    await event(inner, 2, title="Final")
    await room(inner, 3, "Bar")
    await room(inner, 4, "Attic")
    await introduce(inner, "studio", "viewer")
    return UserAuditLog(inner.database)


def positions(page: Page[LogEntry]) -> tuple[list[int], int]:
    assert all(entry.id % 2 == 0 for entry in page.results)
    return [entry.id // 2 for entry in page.results], page.total


async def times(inner: Core) -> dict[int, datetime]:
    """When each event was recorded, as answers show it."""
    shown = {event.position: event.recorded_at for event in await read(inner.database, 0)}
    return {position: at.replace(microsecond=at.microsecond // 1000 * 1000) for position, at in shown.items()}


async def test_an_entry_has_client_event_and_aggregate(inner: Core, audit_log: UserAuditLog) -> None:
    entries = (await audit_log.all(LogFilter())).results
    assert [entry.message for entry in entries[:4]] == [
        "room.registered room 00000000-0000-0000-0000-000000000001",
        "client.registered client desk",
        "client.key_issued client desk",
        "event.registered event 00000000-0000-0000-0000-000000000002",
    ]
    assert {(entry.level, entry.logger, entry.username) for entry in entries} == {(Level.INFO, "audit", "system")}
    assert {
        position: at.replace(microsecond=at.microsecond // 1000 * 1000)
        for position, at in ((entry.id // 2, entry.recorded_at) for entry in entries)
    } == await times(inner)


@pytest.mark.parametrize(
    ("parts", "everything", "clients"),
    [
        ({}, ([1, 2, 3, 4, 5, 6, 7, 8], 8), ([2, 3, 7, 8], 4)),
        ({"descending": True}, ([8, 7, 6, 5, 4, 3, 2, 1], 8), ([8, 7, 3, 2], 4)),
        ({"start": 1, "size": 2}, ([2, 3], 8), ([3, 7], 4)),
        ({"start": 1, "size": 2, "descending": True}, ([7, 6], 8), ([7, 3], 4)),
        ({"start": 7, "size": 5}, ([8], 8), ([], 4)),
        ({"start": 8}, ([], 8), ([], 4)),
        ({"start": 2**63 - 1, "size": 2**63 - 1}, ([], 8), ([], 4)),
        ({"levels": (Level.INFO, Level.WARN)}, ([1, 2, 3, 4, 5, 6, 7, 8], 8), ([2, 3, 7, 8], 4)),
        ({"levels": (Level.WARN,)}, ([], 0), ([], 0)),
        ({"recorded_from": FAR[0], "recorded_to": FAR[1]}, ([1, 2, 3, 4, 5, 6, 7, 8], 8), ([2, 3, 7, 8], 4)),
        ({"recorded_from": FAR[1]}, ([], 0), ([], 0)),
        ({"recorded_to": FAR[0]}, ([], 0), ([], 0)),
    ],
)
async def test_a_page_has_the_selected_entries(
    audit_log: UserAuditLog, parts: dict[str, Any], everything: Any, clients: Any
) -> None:
    for _ in range(7):
        assert positions(await audit_log.all(LogFilter(**parts))) == everything
        assert positions(await audit_log.of_clients(LogFilter(**parts))) == clients


async def test_a_span_of_time_is_inclusive_and_agrees_with_counting(
    inner: Core, audit_log: UserAuditLog, database_url: str
) -> None:
    """With equal times, gaps of time and times between two milliseconds, as one commit and a busy moment make them."""
    as_superuser(
        database_url,
        "UPDATE events SET recorded_at = timestamptz '2031-01-01Z' + (ARRAY[0, 0, 1, 1, 1, 3.4, 3.9, 9])[position]"
        " * interval '1 ms'",
    )
    start = datetime(2031, 1, 1, tzinfo=UTC)
    shown = await times(inner)
    for low in range(-1, 11):
        for high in range(-1, 11):
            span = LogFilter(recorded_from=start + low * TICK, recorded_to=start + high * TICK)
            expected = [position for position, at in shown.items() if span.recorded_from <= at <= span.recorded_to]  # type: ignore[operator]
            assert positions(await audit_log.all(span)) == (expected, len(expected)), (low, high)
            clients = [position for position in expected if position in (2, 3, 7, 8)]
            assert positions(await audit_log.of_clients(span)) == (clients, len(clients)), (low, high)


async def test_an_empty_log_has_no_entries(inner: Core) -> None:
    empty = UserAuditLog(inner.database)
    for span in (LogFilter(), LogFilter(recorded_from=FAR[0], recorded_to=FAR[1])):
        assert positions(await empty.all(span)) == ([], 0)
        assert positions(await empty.of_clients(span)) == ([], 0)
