"""Keys and passwords of channels and flows over HTTP: write-only, and encrypted in the vault only."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx

from api.wiring.core import Core
from domain.kernel.encryption import SecretCipher
from projections.vault.vault import Vault
from tests.api.asking import UNKNOWN, add_channel, add_flow, assert_problem, fields_of, last, logged, new_id, topics


def encoder(name: str, key: Any) -> dict[str, Any]:
    return {"name": name, "encoderSpecific": {"password": key}}


def text_with(*encoders: dict[str, Any]) -> str:
    return json.dumps({"encoders": list(encoders)})


async def secrets_of(inner: Core, stream: str) -> dict[str, str | None]:
    """The decrypted secrets of a record, by their paths."""
    vault = Vault(inner.database, SecretCipher(bytes(32)))
    events = [event.data["secrets"] for event in await logged(inner, stream) if "secrets" in event.data][-1]
    return {place: await vault.read(UUID(ref["reference"]), owner=stream) for place, ref in events.items()}


async def rows(inner: Core) -> list[tuple[str, UUID]]:
    """The owner and the reference of each stored secret."""
    return [
        (owner, key) for owner, key in await inner.database.rows("SELECT owner, reference FROM vault ORDER BY owner, reference")
    ]


async def put(http: httpx.AsyncClient, key: str, *encoders: dict[str, Any]) -> httpx.Response:
    answer = await http.put(f"/api/channel/{key}", json={"configurationJson": text_with(*encoders)})
    assert answer.status_code == 200, answer.text
    return answer


async def opened(inner: Core, key: str) -> list[str | None]:
    """The decrypted secrets of the only channel that has any."""
    result = await secrets_of(inner, f"channel:{key}")
    assert len(await rows(inner)) == len(result)
    return list(result.values())


async def test_what_a_get_shows_can_be_put_back_and_nothing_happens(http: httpx.AsyncClient, inner: Core) -> None:
    for path, key in (("channel", await add_channel(http, configurationJson=text_with(encoder("a", "k")))),
                      ("flow", await add_flow(http))):  # fmt: skip
        shown = await http.get(f"/api/{path}/{key}")
        before = await rows(inner)
        back = await http.put(f"/api/{path}/{key}", json=shown.json())
        assert (back.status_code, back.json(), back.headers["etag"]) == (200, shown.json(), '"1"')
        assert await topics(inner, f"{path}:{key}") == [f"{path}.registered"]
        assert await rows(inner) == before


async def test_null_and_absent_keep_and_the_empty_text_clears(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_channel(http, configurationJson=text_with(encoder("a", "k"), encoder("b", "l")))
    before = await rows(inner)
    await put(http, key, encoder("a", None), {"name": "b", "encoderSpecific": {"more": 1}})
    assert await opened(inner, key) == ["k", "l"]
    await http.put(f"/api/channel/{key}", json={"name": "x", "referenceId": "y"})
    assert await rows(inner) == before

    cleared = await put(http, key, encoder("a", ""), encoder("b", None))
    assert json.loads(cleared.json()["configurationJson"])["encoders"][0] == encoder("a", None)
    assert await opened(inner, key) == ["l"]
    assert (await put(http, key, encoder("a", ""), encoder("b", None))).headers["etag"] == cleared.headers["etag"]
    assert (await http.put(f"/api/channel/{key}", json=cleared.json())).headers["etag"] == cleared.headers["etag"]


async def test_deletion_erases_secrets_and_a_restored_flow_has_new_ones(http: httpx.AsyncClient, inner: Core) -> None:
    channel, flow = await add_channel(http, configurationJson=text_with(encoder("a", "k"))), await add_flow(http)
    assert len(await rows(inner)) == 3
    await http.delete(f"/api/channel/{channel}")
    await http.delete(f"/api/flow/{flow}")
    assert await rows(inner) == []
    await add_flow(http, id=flow)
    assert list((await secrets_of(inner, f"flow:{flow}")).values()) == ["first-key", "second-key"]
    other = await add_channel(http, configurationJson=text_with(encoder("a", "k")))
    await http.put(f"/api/channel/{other}", json={"configurationJson": None})
    assert [owner for owner, _ in await rows(inner)] == [f"flow:{flow}"] * 2


async def test_concurrent_changes_leave_one_stored_secret(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_channel(http, configurationJson=text_with(encoder("a", "k")))
    await asyncio.gather(*(put(http, key, encoder("a", f"k{n}")) for n in range(10)))
    assert len(await topics(inner, f"channel:{key}")) == 11
    [remaining] = await opened(inner, key)
    assert remaining in {f"k{n}" for n in range(10)}
    flow = new_id()
    await asyncio.gather(*(add_flow(http, f"{n}", id=flow) for n in range(10)))
    assert [owner for owner, _ in await rows(inner)] == [f"channel:{key}", f"flow:{flow}", f"flow:{flow}"]


async def test_a_refused_or_repeated_request_stores_no_secret(http: httpx.AsyncClient, inner: Core) -> None:
    body = {"name": "x", "configurationJson": text_with(encoder("a", "k"))}
    first, again = [await http.post("/api/channel/", json=body, headers={"Idempotency-Key": "1"}) for _ in range(2)]
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    before, log = await rows(inner), await last(inner)
    assert len(before) == 1
    changed = {"configurationJson": text_with(encoder("a", "other"))}
    path = f"/api/channel/{first.json()['id']}"
    assert_problem(await http.put(path, json=changed, headers={"If-Match": '"9"'}), 412)
    assert_problem(await http.put(f"/api/channel/{UNKNOWN}", json=changed), 404)
    assert fields_of(await http.put(path, json={**changed, "name": ""})) == ["name"]
    assert_problem(await http.post("/api/channel/", json={**body, **changed}, headers={"Idempotency-Key": "1"}), 409)
    assert (await rows(inner), await last(inner)) == (before, log)
