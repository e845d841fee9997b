"""The header X-Actor: who acted through a client, as a trusted client says."""

from __future__ import annotations

import httpx

from api.wiring.core import Core
from projections.audit.index import fill
from tests.api.asking import assert_problem, last, logged
from tests.api.audit.test_redactions import places, redact

USER = "Jürgen Jønsson"


async def trusted(http: httpx.AsyncClient, name: str = "desk") -> dict[str, str]:
    """The headers of a client that may say so."""
    made = await http.post("/api/client/", json={"name": name, "roles": ["operator"], "trustActor": True})
    assert (made.status_code, made.json()["trustActor"]) == (201, True)
    return {"API-KEY": made.json()["key"]}


def encoded(headers: dict[str, str]) -> dict[bytes, bytes]:
    """In UTF-8, where httpx would take ASCII only."""
    return {name.encode(): value.encode() for name, value in headers.items()}


async def test_the_audit_shows_who_acted_through_a_trusted_client(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {**await trusted(http), "X-Actor": USER}
    made = await http.put("/api/tag/", json={"name": "a"}, headers=encoded(headers))
    assert made.status_code in (200, 201), made.text
    [stored] = await logged(inner, f"tag:{made.json()['id']}")
    assert (stored.cause["actor"], stored.cause["end_user"]) == ("desk", USER)
    [entry] = (await http.get("/api/audit/events/", params={"actor": USER})).json()["results"]
    assert (entry["actor"], entry["endUser"], entry["type"]) == ("desk", USER, "tag.registered")
    assert (await http.get("/api/audit/events/", params={"type": "client.registered"})).json()["results"][0]["endUser"] is None
    assert f"desk:{USER}" in (await http.get("/api/log/useraudit/")).text


async def test_of_others_it_is_refused_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    headers = await trusted(http)
    await http.put("/api/client/desk", json={"roles": ["operator"], "trustActor": False})
    before = await last(inner)
    inner.directory.invalidate()
    answer = await http.put("/api/tag/", json={"name": "a"}, headers={**headers, "X-Actor": "x"})
    assert_problem(answer, 403)
    assert await last(inner) == before


async def test_what_is_no_name_is_refused(http: httpx.AsyncClient, inner: Core) -> None:
    headers = await trusted(http)
    before = await last(inner)
    for sent in (b"", b" ", b"a\tb", b"x" * 129, b"\xff", "\u202ex".encode()):
        assert_problem(await http.put("/api/tag/", json={"name": "a"}, headers={**encoded(headers), b"X-Actor": sent}), 400)
    assert await last(inner) == before


async def test_an_end_user_can_be_erased(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    headers = {**await trusted(http), "X-Actor": USER}
    await http.put("/api/tag/", json={"name": "a"}, headers=encoded(headers))
    await fill(inner.database)
    assert set(places(database_url, USER)) == {"audit_index", "event_partitions.events_1"}
    assert (await redact(http, actor=USER))["events"] == 1
    assert places(database_url, USER) == []
