"""GET /api/audit/events/: the event log, filtered, page by page."""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import psycopg

from api.cli import verify_export
from api.wiring.catalogue import catalogue
from api.wiring.core import Core
from projections.audit.index import fill
from projections.audit.log_export import WITHHELD
from projections.consumers.timeline import Origin
from projections.log.reader import read
from tests.api.asking import UNKNOWN, add, add_room, fields_of, last, logged, new_id, patch, replace
from tests.projections.audit.sealed import SealedLog, verdict
from tests.support.application import introduce
from workers.adapters.kafka import cloud_event


async def entries(http: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    answer = await http.get("/api/audit/events/", params=asked)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def positions(http: httpx.AsyncClient, **asked: Any) -> list[int]:
    return [entry["position"] for entry in await entries(http, **asked)]


async def walk(http: httpx.AsyncClient, address: str) -> tuple[list[int], int]:
    """Follow `next` to the end: all positions, and how many pages there were."""
    seen: list[int] = []
    pages = 0
    following: str | None = address
    while following:
        body = (await http.get(following)).json()
        seen += [entry["position"] for entry in body["results"]]
        following, pages = body["next"], pages + 1
        assert pages < 100
    return seen, pages


async def test_an_entry_has_actor_type_time_and_transaction(http: httpx.AsyncClient, inner: Core) -> None:
    shown = await add(http)
    headers = {"X-Transaction-ID": "order 66"}
    await http.put(f"/api/event/state/{shown['id']}", json={"state": 2}, headers=headers)
    body = (await http.get("/api/audit/events/")).json()
    assert (body["pageSize"], body["next"]) == (50, None)
    entry = body["results"][0]
    stored = (await logged(inner))[-1]
    row = await inner.database.row("SELECT root, recorded_at FROM commits ORDER BY last_position DESC LIMIT 1")
    assert row is not None
    assert entry == {
        "position": await last(inner),
        "aggregate": "event",
        "id": shown["id"],
        "version": 2,
        "type": "event.state_changed",
        "recordedAt": row[1].strftime("%Y-%m-%dT%H:%M:%S.") + f"{row[1].microsecond // 1000:03}Z",
        "actor": "admin",
        "actorKind": "client",
        "endUser": None,
        "transactionId": "order 66",
        "causationId": None,
        "data": stored.data,
        "hash": row[0].hex(),
    }
    assert [entry["actor"] for entry in body["results"]][-1] == "system"


async def test_filters_select_entries_and_combine(http: httpx.AsyncClient, inner: Core) -> None:
    studio = {"API-KEY": await introduce(inner, "studio", "operator")}  # 1 to 4: admin and studio, each with a key
    room = await add_room(http)  # 5
    first = (await http.post("/api/event/", json={"Title": "a"}, headers={**studio, "X-Transaction-ID": "t1"})).json()["id"]  # 6
    two = (await add(http, RoomId=room))["id"]  # 7
    await http.put(f"/api/event/state/{first}", json={"state": 2}, headers={"X-Transaction-ID": "t1"})  # 8
    table: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [8, 7, 6, 5, 4, 3, 2, 1]),
        ({"order": "ASC"}, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"after": 5}, [6, 7, 8]),
        ({"after": 5, "order": "DESC"}, [8, 7, 6]),
        ({"before": 3}, [2, 1]),
        ({"before": 3, "order": "asc"}, [1, 2]),
        ({"after": 2, "before": 5}, [3, 4]),
        ({"after": 8}, []),
        ({"after": 0}, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"before": 0}, []),
        ({"after": 2**63 - 1}, []),
        ({"aggregate": "event"}, [8, 7, 6]),
        ({"aggregate": "room"}, [5]),
        ({"aggregate": "Event"}, []),
        ({"aggregate": "nothing"}, []),
        ({"id": first}, [8, 6]),
        ({"id": first.upper()}, [8, 6]),
        ({"id": "studio"}, [4, 3]),
        ({"id": two, "aggregate": "event"}, [7]),
        ({"id": two, "aggregate": "room"}, []),
        ({"id": new_id()}, []),
        ({"type": "event.state_changed"}, [8]),
        ({"type": "event.%"}, []),
        ({"actor": "studio"}, [6]),
        ({"actor": "system"}, [4, 3, 2, 1]),
        ({"actor": "Admin"}, []),
        ({"transactionId": "t1"}, [8, 6]),
        ({"TRANSACTIONID": "t1", "actor": "admin", "aggregate": "event", "after": 6}, [8]),
        ({"actor": "' OR 1=1 --"}, []),
    ]
    for asked, result in table:
        assert await positions(http, **asked) == result, asked


async def test_times_bound_the_log_inclusively_as_they_are_shown(http: httpx.AsyncClient) -> None:
    for _ in range(3):
        await add(http)
    everything = await entries(http, order="ASC")
    for entry in everything:
        at = entry["recordedAt"]
        expected = [other["position"] for other in everything if other["recordedAt"] == at]
        assert await positions(http, **{"from": at, "to": at, "order": "ASC"}) == expected
        assert await positions(http, **{"from": at, "order": "ASC"}) == [o["position"] for o in everything if o["recordedAt"] >= at]
        assert await positions(http, to=at, order="ASC") == [o["position"] for o in everything if o["recordedAt"] <= at]
    assert await positions(http, to="0001-01-01") == []
    assert await positions(http, **{"from": "9999-12-31T23:59:59.999Z"}) == []
    assert len(await positions(http, to="9999-12-31T23:59:59.999Z")) == len(everything)


async def test_next_leads_to_the_end_in_both_directions(http: httpx.AsyncClient, inner: Core) -> None:
    for n in range(9):
        await add(http, Title=f"{n}")
    head = await last(inner)
    assert head == 11
    ascending = list(range(1, head + 1))
    for query, result, pages in [
        ("pageSize=4", ascending[::-1], 3),
        ("pageSize=4&after=0", ascending, 3),
        ("pageSize=4&order=ASC", ascending, 3),
        ("pageSize=4&order=DESC&after=3", ascending[:2:-1], 2),
        ("pageSize=4&order=ASC&before=9", ascending[:8], 2),
        ("pageSize=11", ascending[::-1], 1),
        ("pageSize=10", ascending[::-1], 2),
        ("pageSize=1&aggregate=client&actor=system", [2, 1], 2),
        ("pageSize=1&from=2001-01-01T01:00:00%2B01:00&to=9999-12-31&type=client.registered", [1], 1),
    ]:
        assert await walk(http, f"/api/audit/events/?{query}") == (result, pages), query


async def test_next_keeps_the_filters(http: httpx.AsyncClient) -> None:
    odd = "a&b=c d+é/%"
    for _ in range(3):
        await http.post("/api/event/", json={}, headers={"X-Transaction-ID": "a&b=c d+/%"})
    asked = {
        "transactionId": "a&b=c d+/%",
        "from": "2001-01-01T02:00:00+02:00",
        "aggregate": "event",
        "pageSize": "2",
        "order": "ASC",
    }
    following = (await http.get("/api/audit/events/", params=asked)).json()["next"]
    assert urlsplit(following).path == "/api/audit/events/"
    parts = {name: value[0] for name, value in parse_qs(urlsplit(following).query).items()}
    assert parts.pop("after") == "4"
    assert parts == {**asked, "from": "2001-01-01T00:00:00.000Z"}
    assert [entry["position"] for entry in (await http.get(following)).json()["results"]] == [5]
    assert await positions(http, transactionId=odd) == []


async def test_a_page_has_1000_entries_at_most_and_says_so(http: httpx.AsyncClient) -> None:
    for asked, used in ((1, 1), (1000, 1000), (1001, 1000), (10**15, 1000)):
        assert (await http.get("/api/audit/events/", params={"pageSize": asked})).json()["pageSize"] == used


async def test_invalid_parameters_are_400(http: httpx.AsyncClient) -> None:
    for name, values in {
        "after": ["-1", "x", "1.5", str(2**63)],
        "before": ["-1"],
        "pageSize": ["0", "-5", "x"],
        "order": ["UP"],
        "from": ["soon", "99999-01-01"],
        "to": ["0000-01-01"],
    }.items():
        for value in values:
            assert fields_of(await http.get("/api/audit/events/", params={name: value})) == [name], (name, value)


async def test_history_has_all_events_of_an_aggregate_in_order(http: httpx.AsyncClient) -> None:
    key = (await add(http, Title="a", EventState=1))["id"]
    await add(http)
    await patch(http, key, replace("/Title", "b"))
    for path in (f"/api/audit/event/{key}/", f"/api/audit/event/{key}", f"/api/audit/event/{key.upper()}"):
        history = (await http.get(path)).json()
        assert [entry["type"] for entry in history] == ["event.registered", "event.state_changed", "event.described"]
        assert [entry["version"] for entry in history] == [1, 2, 3]
    assert history == (await entries(http, id=key, order="ASC"))
    assert [entry["type"] for entry in (await http.get("/api/audit/client/admin")).json()] == [
        "client.registered",
        "client.key_issued",
    ]


async def test_the_hash_of_a_key_is_not_shown(http: httpx.AsyncClient) -> None:
    """A key may be chosen by an operator, and guessed from its hash."""
    key_hash = sha256(http.headers["API-KEY"].encode()).hexdigest()
    for path in ("/api/audit/events/", "/api/audit/client/admin"):
        answer = await http.get(path)
        assert "client.key_issued" in answer.text
        assert key_hash not in answer.text


async def test_an_export_has_the_hash_of_a_key_for_admins_only(
    http: httpx.AsyncClient, inner: Core, database_url: str, tmp_path: Path
) -> None:
    """The export still verifies as the whole log, as a part of it, and as all events of one client, also if the cause of such an
    event was erased."""
    key_hash = sha256(http.headers["API-KEY"].encode()).hexdigest()
    auditor = {"API-KEY": await introduce(inner, "auditor", "auditor")}
    exports: list[tuple[str, dict[str, Any]]] = [
        ("log", {}),
        ("log", {"through": 2}),
        *(("stream", {"aggregate": "client", "id": name}) for name in ("admin", "studio")),
    ]
    studio = await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})
    hashes = {"admin": key_hash, "studio": sha256(studio.json()["key"].encode()).hexdigest()}
    redaction = await http.post("/api/audit/redact", json={"reason": "asked for", "actor": "admin"})
    assert redaction.json()["events"] >= 2, redaction.text
    with SealedLog.opened(database_url, tmp_path) as log:
        log.seal()
        for mode, asked in (*exports, ("none", {"aggregate": "client"})):
            for headers, reported in (({}, True), (auditor, False)):
                answer = await http.get("/api/audit/export", params=asked, headers=headers)
                assert "client.key_issued" in answer.text
                hash = hashes[asked.get("id", "admin")]
                assert (hash in answer.text, "state_withheld" in answer.text) == (reported, not reported), (asked, reported)
                path = tmp_path / "export"
                path.write_bytes(answer.content)
                if mode != "none":
                    code, output = verdict(mode, path, "--key", log.key)
                    assert (code, "contents withheld" in output) == (0, not reported), output
        assert key_hash in log.export().read_text(), "what the operator exports is whole"


async def test_an_export_withholds_nothing_but_hashes_of_keys(http: httpx.AsyncClient, inner: Core, tmp_path: Path) -> None:
    auditor = {"API-KEY": await introduce(inner, "auditor", "auditor")}
    await add(http)
    with_hash = {event.TOPIC for event in catalogue().events.values() if "key_hash" in event.model_fields}
    assert with_hash == {WITHHELD, verify_export.WITHHELD}
    text = (await http.get("/api/audit/export", headers=auditor)).text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["topic"] for line in lines if "state_withheld" in line} == with_hash
    other = next(line for line in lines if line.get("topic") == "event.registered")
    other |= {"state": f'{{"timestamp":"{other["recorded_at"]}","redacted":true}}', "state_hash": "00" * 32, "state_withheld": True}
    path = tmp_path / "export"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, output = verdict("log", path)
    assert (code, "is withheld, which only client.key_issued may be" in output) == (3, True), output


async def test_the_history_of_an_unknown_aggregate_is_404(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for path in (
        f"event/{UNKNOWN}",
        "event/x",
        f"room/{key}",
        f"nothing/{key}",
        "client/nobody",
        "Event/" + key,
        "%2F/%2F",
        "日本/é",
    ):
        for tail in ("", "/", "/state"):
            assert (await http.get(f"/api/audit/{path}{tail}")).status_code == 404, path
    for tail in ("", "/state"):
        detail = (await http.get(f"/api/audit/nothing/{key}{tail}")).json()["detail"]
        kinds = detail.removeprefix("There is no kind nothing; there are ").removesuffix(".").split(", ")
        assert {"event", "room", "job", "client"} <= set(kinds)
    for path in ("event/%ff", "%ff/x", "event/%00"):
        assert (await http.get(f"/api/audit/{path}")).status_code == 400, path


async def test_a_long_history_has_pages(http: httpx.AsyncClient) -> None:
    key = (await add(http))["id"]
    for number in range(4):
        await patch(http, key, replace("/Title", f"title {number}"))
    path: str | None = f"/api/audit/event/{key}/?pageSize=2"
    seen: list[int] = []
    while path is not None:
        answer = await http.get(path)
        assert len(answer.json()) <= 2
        seen += [entry["version"] for entry in answer.json()]
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert seen == [1, 2, 3, 4, 5]
    assert (await http.get(f"/api/audit/event/{key}/?after=5")).json() == []


async def test_a_record_of_kafka_without_its_content_refers_to_its_entry(http: httpx.AsyncClient, inner: Core) -> None:
    for number in range(3):
        await add_room(http, f"{number}")
    event = dataclasses.replace((await read(inner.database, 0))[-2], state=b"")
    sent = dict(cloud_event.headers(event, after=0, origin=Origin(UUID(int=1), 1)))
    results = (await http.get(sent["ce_dataref"].decode())).json()["results"]
    assert [(entry["position"], entry["data"]["name"]) for entry in results] == [(event.position, "1")]


async def test_the_index_gives_what_the_log_gives(http: httpx.AsyncClient, inner: Core) -> None:
    """Without it, with a part of the log in it, and with all of it."""
    studio = {"API-KEY": await introduce(inner, "studio", "operator")}
    for number in range(4):
        await add_room(http, f"{number}")
        await http.post("/api/event/", json={"Title": "a"}, headers={**studio, "X-Transaction-ID": "t1"})
    asked: list[dict[str, Any]] = [
        {"actor": "studio"},
        {"actor": "studio", "order": "ASC"},
        {"type": "room.registered", "after": 5},
        {"transactionId": "t1", "before": 12, "pageSize": 2},
        {"aggregate": "room", "actor": "admin"},
        {"aggregate": "room", "actor": "studio"},
        {"actor": "nobody"},
    ]
    before = [await positions(http, **entry) for entry in asked]
    assert before[0] != []
    await fill(inner.database)
    assert [await positions(http, **entry) for entry in asked] == before
    await inner.database.execute("DELETE FROM audit_index WHERE position > 8")
    assert [await positions(http, **entry) for entry in asked] == before
    await inner.database.execute("UPDATE audit_index SET actor = 'nobody' WHERE position = 3")
    assert await positions(http, actor="nobody") == [3], "it is the index that was asked"


async def test_pages_of_the_index_follow_each_other(http: httpx.AsyncClient, inner: Core) -> None:
    for number in range(7):
        await add_room(http, f"{number}")
    wanted = await positions(http, type="room.registered")
    await fill(inner.database)
    seen, pages = await walk(http, "/api/audit/events/?type=room.registered&pageSize=2")
    assert (seen, pages) == (wanted, 4)


async def test_the_index_is_filled_while_its_table_is_vacuumed(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    await add_room(http, "Hall")
    with psycopg.connect(database_url) as vacuum:
        vacuum.execute("LOCK TABLE audit_index IN SHARE UPDATE EXCLUSIVE MODE")  # as VACUUM does
        await fill(inner.database)
    assert await inner.database.row("SELECT count(*) FROM audit_index WHERE topic = 'room.registered'") == (1,)
