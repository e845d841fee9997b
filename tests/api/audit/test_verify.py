"""GET /api/audit/verify: always 200, and the first position that does not fit."""

from __future__ import annotations

import asyncio

import httpx
import psycopg

from api.wiring.core import Core
from tests.api.asking import add, last


def tamper(database_url: str, statement: str) -> None:
    """As somebody who holds the database itself might: past the log's own triggers."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        changed = connection.execute(statement.encode()).rowcount
    assert changed >= 1


async def test_an_untouched_log_is_valid(http: httpx.AsyncClient, inner: Core) -> None:
    for _ in range(3):
        await add(http)
    for path in ("/api/audit/verify", "/api/audit/verify/"):
        answer = await http.get(path)
        assert answer.json() == {"valid": True, "checked": await last(inner), "firstBadPosition": None, "reason": None}


async def test_the_first_bad_position_is_named(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    for n in range(6):
        await add(http, Title=f"{n}")
    for statement, position in [
        ("UPDATE events SET state = convert_to('{}', 'UTF8') WHERE position = 7", 7),
        ('UPDATE events SET metadata = \'{"actor": "nobody"}\' WHERE position = 6', 6),
        ("DELETE FROM events WHERE position = 5", 5),
        ("UPDATE events SET recorded_at = recorded_at + interval '1 second' WHERE position = 4", 4),
        ("UPDATE events SET topic = 'client.deleted' WHERE position = 2", 1),  # the commit has both
    ]:
        tamper(database_url, statement)
        answer = await http.get("/api/audit/verify")
        body = answer.json()
        assert answer.status_code == 200
        assert (body["valid"], body["checked"], body["firstBadPosition"]) == (False, position - 1, position), statement
        assert body["reason"]


async def test_a_log_without_its_last_events_is_invalid(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    await add(http)
    head = await last(inner)
    tamper(database_url, f"DELETE FROM events WHERE position = {head}")
    body = (await http.get("/api/audit/verify")).json()
    assert (body["valid"], body["firstBadPosition"]) == (False, head)


async def test_verification_runs_during_writes(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(add(http) if n % 4 else http.get("/api/audit/verify") for n in range(24)))
    verdicts = [answer.json() for answer in answers if isinstance(answer, httpx.Response)]
    assert [verdict["valid"] for verdict in verdicts] == [True] * 6
