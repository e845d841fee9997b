"""The kind of actor of an event. No name makes an actor the product, a client or a person."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import httpx

from api.wiring.core import Core
from api.wiring.rooms.client import CLIENT
from domain.client import events
from domain.client.aggregate import Client, NewKey
from domain.client.commands import RegisterClient
from domain.kernel.ports import Invocation
from projections.audit.index import fill
from tests.api.asking import assert_problem, logged
from tests.api.audit.test_redactions import redact
from tests.support.application import introduce

OWN = {"Sec-Fetch-Site": "same-origin"}


@dataclass(frozen=True)
class FormerRegistration(RegisterClient):
    """As an earlier build registered clients, which reserved fewer names and claimed none."""

    def decide(self, root: Client | None, *, at: datetime) -> Client:
        assert root is None
        made = Client._begin(events.ClientRegistered, self.key, at, roles=self.roles)
        made.issue_key(at, self.first)
        return made


async def former(inner: Core, name: str) -> dict[str, str]:
    """The headers of a client of an earlier build."""
    new = NewKey(f"{name}-1", sha256(f"key-of-{name}".encode()).hexdigest())
    await inner.executor.execute(FormerRegistration(name, ("operator",), new), invocation=Invocation.by("system"))
    inner.directory.invalidate()
    return {"API-KEY": f"key-of-{name}"}


async def newest(http: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await http.get("/api/audit/events/", params={"type": "tag.registered", **query})
    result: dict[str, Any] = max(answer.json()["results"], key=lambda entry: int(entry["position"]))
    return result


async def test_a_client_of_an_earlier_build_that_is_called_system_is_no_product(http: httpx.AsyncClient, inner: Core) -> None:
    for name in ("system", "redacted"):
        headers = await former(inner, name)
        made = await http.put("/api/tag/", json={"name": f"by {name}"}, headers=headers)
        assert made.status_code in (200, 201), made.text
        entry = await newest(http)
        assert (entry["actor"], entry["actorKind"]) == (name, "client")
    registered = (await http.get("/api/audit/events/", params={"type": "client.registered"})).json()["results"]
    assert {(entry["actor"], entry["actorKind"]) for entry in registered} == {("system", "product")}


async def test_a_client_a_person_and_a_shell(http: httpx.AsyncClient, inner: Core, application: Any) -> None:
    await http.put("/api/tag/", json={"name": "a"})
    entry = await newest(http)
    assert (entry["actor"], entry["actorKind"]) == ("admin", "client")
    [stored] = await logged(inner, f"tag:{entry['id']}")
    assert "actor_kind" not in stored.cause, "the usual kind takes no byte"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://media.test") as browser:
        await browser.post("/console/session", json={"apiKey": "key-of-admin"}, headers=OWN)
        await browser.put("/api/tag/", json={"name": "b"}, headers=OWN)
        place = (await browser.post("/api/room/", json={"name": "hall"}, headers=OWN)).headers["location"]
        assert (await browser.put(place, json={"name": "court"}, headers=OWN)).status_code == 200
    entry = await newest(http)
    assert (entry["actor"], entry["actorKind"]) == ("admin", "person")
    diff = (await http.get(f"/api/audit{place.removeprefix('/api')}/diff", params={"from": 1, "to": 2})).json()
    assert {change["actorKind"] for change in diff["changes"]} == {"person"}
    desk = RegisterClient("desk", ("viewer",), NewKey("desk-1", "0" * 64))
    await inner.executor.execute(desk, invocation=Invocation.by("shell:root"))
    shell = (await http.get("/api/audit/events/", params={"actor": "shell:root"})).json()["results"][-1]
    assert shell["actorKind"] == "shell"


async def test_a_cause_that_was_erased_has_no_kind(http: httpx.AsyncClient, inner: Core) -> None:
    key = await introduce(inner, "desk", "operator")
    await http.put("/api/tag/", json={"name": "a"}, headers={"API-KEY": key})
    await fill(inner.database)
    await redact(http, actor="desk")
    entry = await newest(http)
    assert (entry["actor"], entry["actorKind"]) == ("redacted", None)


async def test_a_name_that_looks_like_another_is_refused_also_in_a_race(http: httpx.AsyncClient) -> None:
    async def add(name: str) -> httpx.Response:
        return await http.post("/api/client/", json={"name": name, "roles": ["viewer"]})

    answers = await asyncio.gather(*map(add, ("studio1", "STUDIO1", "studiol", "Studioi")))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    for name in ("admin2", "ADMIN2"):
        last = await add(name)
    assert_problem(last, 409)
    for name in ("system", "Admin", "admln", "redacted", "Engine"):
        assert_problem(await add(name), 400)


async def test_clients_of_earlier_builds_claim_their_names_when_the_home_is_upgraded(http: httpx.AsyncClient, inner: Core) -> None:
    [migration] = [each for each in CLIENT.migrations if "names" in each.name]
    for name in ("Desk", "news"):
        await former(inner, name)
    await inner.database.rows("DELETE FROM unique_claims WHERE scope = 'client.name' RETURNING 1")
    await former(inner, "desk")
    await inner.database.rows("DELETE FROM unique_claims WHERE scope = 'client.name' RETURNING 1")
    await http.delete("/api/client/news")
    for _ in range(2):
        await inner.database.execute(migration.statements.replace("%", "%%"))
    claims = await inner.database.rows("SELECT value FROM unique_claims WHERE scope = 'client.name' ORDER BY value")
    assert claims == [("admln",), ("desk",), ("news",)]
    assert_problem(await http.post("/api/client/", json={"name": "NEWS", "roles": ["viewer"]}), 409)
    again = await http.post("/api/client/", json={"name": "news", "roles": ["viewer"]})
    assert again.status_code == 201
    assert again.headers["warning"].startswith('299 - "A client had this name before')
    for name in ("desk", "Desk"):
        assert (await http.put(f"/api/client/{name}", json={"roles": ["viewer"]})).status_code == 200, name
        assert (await http.delete(f"/api/client/{name}")).status_code == 200, name
        assert (await http.post("/api/client/", json={"name": name, "roles": ["viewer"]})).status_code == 201, name
