"""GET /api/audit/verify: always 200, and the first position that does not fit."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx
import psycopg
from prometheus_client import CollectorRegistry

from api.audit.routes import Verifier
from api.wiring.core import Core
from projections.audit.verify import verify
from tests.api.asking import add, last
from workers.audit.verification import LogVerifier


def tamper(database_url: str, statement: str) -> None:
    """Change the log past its own triggers, as an owner of the database could."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        changed = connection.execute(statement.encode()).rowcount
    assert changed >= 1


async def test_an_untouched_log_is_valid(http: httpx.AsyncClient, inner: Core) -> None:
    for _ in range(3):
        await add(http)
    for path in ("/api/audit/verify", "/api/audit/verify/"):
        answer = await http.get(path)
        assert answer.json() == {
            "valid": True,
            "checked": await last(inner),
            "firstBadPosition": None,
            "reason": None,
            "next": None,
            "resumeAfter": None,
        }


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


async def test_pages_follow_each_other_to_the_end(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    for _ in range(4):
        await add(http)
    head, address, checked = await last(inner), "/api/audit/verify?after=0&pageSize=2", []
    while address:
        body = (await http.get(address)).json()
        assert body["valid"] is True
        checked.append(body["checked"])
        address = body["next"]
    assert checked[-1] == head
    assert len(checked) >= head // 2 - 1
    tamper(database_url, f"UPDATE events SET state = '{{}}' WHERE position = {head}")
    assert (await http.get("/api/audit/verify?after=0&pageSize=2")).json()["valid"] is True
    assert (await http.get(f"/api/audit/verify?after={head - 1}")).json()["firstBadPosition"] == head
    assert (await http.get("/api/audit/verify?after=-1")).status_code == 400


async def test_the_whole_goes_on_where_it_takes_long(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    """The caller is told how far it is, and a later call gets the result."""
    await add(http)
    verifier = Verifier(partial(verify, database_url), patience=0.0)
    assert await verifier.verify() is None
    verifier = Verifier(partial(verify, database_url))
    result = await verifier.verify()
    assert result is not None
    assert (result.valid, result.checked) == (True, await last(inner))


async def test_the_background_follows_the_log_and_tells_of_damage(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    registry = CollectorRegistry()
    background = LogVerifier(inner.database, registry, part=2)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"medialedger_log_{name}")

    for _ in range(4):
        await add(http)
    await background.look()
    assert (shown("verified_position"), shown("bad_position")) == (await last(inner), 0)
    await add(http)
    tamper(database_url, f"UPDATE events SET state = '{{}}' WHERE position = {await last(inner)}")
    await background.look()
    assert shown("bad_position") == await last(inner)


async def test_an_old_edit_is_found_by_going_through_again(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    background = LogVerifier(inner.database, CollectorRegistry(), part=2)
    for _ in range(4):
        await add(http)
    for _ in range(6):
        await background.look()
    tamper(database_url, "UPDATE events SET state = '{}' WHERE position = 3")
    for _ in range(6):
        await background.look()
    [(bad,)] = await inner.database.rows("SELECT bad_position FROM log_verification WHERE cursor = 'scrub'")
    assert bad == 3
