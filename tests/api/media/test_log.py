"""The log store over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, fields_of, last, new_id
from tests.support.application import introduce
from tests.support.clock import HandClock

EMPTY = {"callSite": "", "exception": "", "logger": "", "machineName": "", "stackTrace": "", "thread": ""}


async def write(http: httpx.AsyncClient, message: str = "x", level: Any = "Info", **fields: Any) -> dict[str, Any]:
    """An entry, about something if `Id` is among the fields."""
    path = "/api/log/loggable/" if fields else "/api/log/"
    answer = await http.post(path, json={"Message": message, "Level": level, **fields})
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def number(entry: dict[str, Any]) -> int:
    """An entry of the log store is counted by its odd id, a position in the log of events by the even id of its entry."""
    assert (entry["id"] % 2 == 0) is (entry["logger"] == "audit")
    return (int(entry["id"]) + 1) // 2


async def numbers(http: httpx.AsyncClient, path: str = "/api/log/", **asked: Any) -> list[int]:
    answer = await http.get(path, params=asked)
    if answer.status_code == 204:
        assert answer.content == b""
        return []
    assert answer.status_code == 200, answer.text
    return [number(entry) for entry in answer.json()["results"]]


async def test_a_message_is_added_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    written = await http.post("/api/log/", json={"message": "  It's <b>on</b> 🎬\r\n", "LEVEL": "warn"})
    assert written.status_code == 201
    assert written.json() == EMPTY | {
        "id": 1,
        "date": "2031-01-02T12:00:00.000Z",
        "level": "Warn",
        "message": "  It's <b>on</b> 🎬\r\n",
        "username": "admin",
    }
    assert (written.headers["location"], written.headers["etag"]) == ("/api/log/1", '"1"')
    assert (await http.get("/api/log/1")).headers["etag"] == '"1"'
    for path in ("/api/log/1", "/api/log/1/"):
        assert (await http.get(path)).json() == written.json()
    assert (await http.get("/api/log/")).json() == {"pageSize": 20, "totalCount": 1, "results": [written.json()]}
    assert await last(inner) == before, "a log store is no domain fact"


async def test_an_entry_names_its_client(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"API-KEY": await introduce(inner, "studio", "operator")}
    answer = await http.post("/api/log/", json={"Message": "x", "Level": 2}, headers=headers)
    assert answer.json()["username"] == "studio"


async def test_levels_have_a_number_and_a_name_in_any_case(http: httpx.AsyncClient) -> None:
    for n, name in enumerate(("Trace", "Debug", "Info", "Warn", "Error", "Fatal", "Off")):
        for level in (n, str(n), name, name.upper(), name.lower()):
            assert (await write(http, level=level))["level"] == name


@pytest.mark.parametrize("path", ["/api/log/", "/api/log/loggable/"])
async def test_message_and_level_are_required(http: httpx.AsyncClient, path: str) -> None:
    good = {"Id": "x", "Message": "x", "Level": "Info"}
    wrong: dict[str, list[Any]] = {
        "message": [None, "", " \t\n", 7, [], {}, True],
        "level": [None, "", "Warning", "7", 7, -1, 1.5, True, [], "None"],
    }
    for name, values in wrong.items():
        rest = {key: value for key, value in good.items() if key.lower() != name}
        assert fields_of(await http.post(path, json=rest)) == [name]
        for value in values:
            assert fields_of(await http.post(path, json={**rest, name: value})) == [name], (name, value)
    assert await numbers(http) == []


async def test_a_loggable_has_an_id_of_600_characters_at_most(http: httpx.AsyncClient) -> None:
    good: dict[str, Any] = {"Message": "x", "Level": "Info"}
    for wrong in (None, "", "  ", 7, "x" * 601, ["x"]):
        assert fields_of(await http.post("/api/log/loggable/", json={**good, "Id": wrong})) == ["id"], wrong
    assert fields_of(await http.post("/api/log/loggable/", json=good)) == ["id"]
    assert (await write(http, Id="🎬" * 600))["id"] == 1


async def test_the_tags_of_a_loggable_are_texts(http: httpx.AsyncClient) -> None:
    for tags in (None, [], ["a", "", "b,c"], ["x"] * 1000):
        await write(http, Id="x", Tag=tags)
    for wrong in ("a", [7], [None], {"a": 1}, ["x"] * 1001):
        answer = await http.post("/api/log/loggable/", json={"Id": "x", "Message": "x", "Level": 1, "Tag": wrong})
        assert fields_of(answer)[0].partition("[")[0] == "tag", wrong
    assert await numbers(http) == [1, 2, 3, 4]


async def test_logs_of_an_event_are_those_with_its_id_however_it_is_spelled(http: httpx.AsyncClient) -> None:
    key, other = new_id(), new_id()
    for spelled in (key, key.upper(), key.replace("-", ""), f"{{{key}}}", other, f"{key}x", "x"):
        await write(http, spelled, Id=spelled)
    await write(http, key)
    for asked in (key, key.upper()):
        assert await numbers(http, f"/api/log/event/{asked}") == [1, 2, 3, 4]
    assert await numbers(http, f"/api/log/event/{key}/", startIndex=1, pageSize=2, queryOrder="DESC") == [3, 2]
    assert await numbers(http, f"/api/log/event/{UNKNOWN}") == []
    assert fields_of(await http.get("/api/log/event/x")) == ["eventId"]
    assert len(await numbers(http)) == 8


async def test_a_page_of_logs(http: httpx.AsyncClient) -> None:
    for n in range(25):
        await write(http, f"{n + 1}", level=n % 5)
    everything = list(range(1, 26))
    cases: list[tuple[dict[str, Any], list[int], int]] = [
        ({}, everything[:20], 25),
        ({"STARTINDEX": 20}, everything[20:], 25),
        ({"startIndex": 3, "pageSize": 4}, [4, 5, 6, 7], 25),
        ({"queryOrder": "desc", "pageSize": 3}, [25, 24, 23], 25),
        ({"queryOrder": "DESC", "startIndex": 24}, [1], 25),
        ({"queryOrder": "ASC", "pageSize": 2}, [1, 2], 25),
        ({"logLevels": "Fatal,off"}, [], 0),
        ({"logLevels": "warn, 4"}, [4, 5, 9, 10, 14, 15, 19, 20, 24, 25], 10),
        ({"logLevels": "Trace", "startIndex": 4}, [21], 5),
        ({"logLevels": ""}, everything[:20], 25),
        ({"startIndex": 25}, [], 25),
        ({"startIndex": 2**63 - 1}, [], 25),
    ]
    for asked, result, total in cases:
        answer = await http.get("/api/log/", params=asked)
        if not result:
            assert (answer.status_code, answer.content) == (204, b""), asked
            continue
        body = answer.json()
        assert ([number(entry) for entry in body["results"]], body["totalCount"]) == (result, total), asked
    for asked_size, size in ((1, 1), (1000, 1000), (1001, 1000), (2**63 - 1, 1000)):
        assert (await http.get("/api/log/", params={"pageSize": asked_size})).json()["pageSize"] == size


async def test_dates_are_inclusive_and_backwards_find_nothing(http: httpx.AsyncClient, clock: HandClock) -> None:
    dates = []
    for _ in range(4):
        dates.append((await write(http))["date"])
        clock.forward(milliseconds=1)
    assert await numbers(http, fromDate=dates[1]) == [2, 3, 4]
    assert await numbers(http, toDate=dates[1]) == [1, 2]
    assert await numbers(http, fromDate=dates[1], toDate=dates[2]) == [2, 3]
    assert await numbers(http, fromDate=dates[2], toDate=dates[1]) == []
    assert await numbers(http, fromDate="2031-01-02T13:00:00.003+01:00") == [4]
    assert await numbers(http, fromDate="2031-01-02", toDate="2031-01-03") == [1, 2, 3, 4]


async def test_invalid_parameters_are_400(http: httpx.AsyncClient) -> None:
    await write(http)
    for path in ("/api/log/", f"/api/log/event/{UNKNOWN}", "/api/log/useraudit/", "/api/log/usermanagement/"):
        for name, values in {
            "startIndex": ["-1", "x", "1.5", str(2**63)],
            "pageSize": ["0", "-1", "x", str(2**63)],
            "fromDate": ["soon", "12:00"],
            "toDate": ["99999-01-01"],
            "queryOrder": ["UP"],
        }.items():
            for value in values:
                assert fields_of(await http.get(path, params={name: value})) == [name], (path, name, value)
        for value in ("Loud", "7", "Info,-1"):
            assert fields_of(await http.get(path, params={"logLevels": value}))[0].startswith("logLevels"), (path, value)


async def test_an_unknown_entry_is_204(http: httpx.AsyncClient) -> None:
    for path in ("1", "0", str(2**63 - 1)):
        answer = await http.get(f"/api/log/{path}")
        assert (answer.status_code, answer.content) == (204, b""), path
    for path in ("x", "-1", str(2**63), UNKNOWN, "1.0"):
        assert fields_of(await http.get(f"/api/log/{path}")) == ["id"], path
    assert (await http.get("/api/log/")).status_code == 204


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/log/", {"Message": "x", "Level": "Info"}),
        ("/api/log/loggable/", {"Id": "x", "Message": "x", "Level": "Info"}),
        ("/api/log/exception/", {"Message": "x"}),
    ],
)
async def test_a_repeated_post_adds_one_entry(http: httpx.AsyncClient, path: str, body: Any) -> None:
    """Nothing is appended to the log of events, so the kernel itself keeps the answer."""
    headers = {"Idempotency-Key": "k"}
    first = await http.post(path, json=body, headers=headers)
    again = await http.post(path, json=body, headers=headers)
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert_problem(await http.post(path, json={**body, "Message": "y"}, headers=headers), 409)
    assert await numbers(http) == [1]


async def test_a_repeated_post_at_the_same_time_adds_one_entry(http: httpx.AsyncClient) -> None:
    body, headers = {"Message": "x", "Level": "Info"}, {"Idempotency-Key": "k"}
    answers = await asyncio.gather(*(http.post("/api/log/", json=body, headers=headers) for _ in range(5)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert await numbers(http) == [1]


async def test_link_leads_through_all_pages_of_each_list(http: httpx.AsyncClient) -> None:
    event = str((await add(http))["id"])
    for _ in range(4):
        await write(http, "x", Id=event)
    await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})
    for path in ("/api/log/", f"/api/log/event/{event}/", "/api/log/useraudit/", "/api/log/usermanagement/"):
        everything = await numbers(http, path, pageSize=2000, queryOrder="DESC")
        assert "link" not in (await http.get(path, params={"pageSize": 2000})).headers
        following: str | None = f"{path}?STARTINDEX=1&pageSize=2&queryOrder=DESC"
        result: list[int] = []
        while following is not None and len(result) < 100:
            answer = await http.get(following)
            result += [number(entry) for entry in answer.json()["results"]]
            following = answer.links["next"]["url"] if "next" in answer.links else None
        assert result == everything[1:], path
        assert len(result) > 2, path


async def test_a_size_that_was_cut_counts_for_the_next_page(http: httpx.AsyncClient, inner: Core) -> None:
    await inner.database.execute(
        "INSERT INTO logbook (recorded_at, level, message, username) SELECT now(), 2, 'x', 'studio' FROM generate_series(1, 1001)"
    )
    answer = await http.get("/api/log/?pageSize=5000&startIndex=0")
    assert answer.links["next"]["url"] == "/api/log/?pageSize=5000&startIndex=1000"
    assert [number(entry) for entry in (await http.get(answer.links["next"]["url"])).json()["results"]] == [1001]


async def test_user_audit_shows_every_change_and_its_client(http: httpx.AsyncClient, inner: Core) -> None:
    headers = {"API-KEY": await introduce(inner, "studio", "operator")}
    event = (await http.post("/api/event/", json={"EventState": 1}, headers=headers)).json()["id"]
    room = await add_room(http)
    body = (await http.get("/api/log/useraudit/", params={"pageSize": 3, "startIndex": 4})).json()
    log = (await http.get("/api/audit/events/", params={"after": 4})).json()["results"]
    assert [entry["position"] for entry in log] == [5, 6, 7]
    assert body == {
        "pageSize": 3,
        "totalCount": 7,
        "results": [
            EMPTY
            | {
                "id": 2 * entry["position"],
                "date": entry["recordedAt"],
                "level": "Info",
                "logger": "audit",
                "message": message,
                "username": username,
            }
            for entry, message, username in zip(
                log,
                [f"event.registered event {event}", f"event.state_changed event {event}", f"room.registered room {room}"],
                ["studio", "studio", "admin"],
                strict=True,
            )
        ],
    }


async def test_a_date_read_in_the_user_audit_finds_its_entry(http: httpx.AsyncClient) -> None:
    """The log keeps microseconds and shows milliseconds."""
    for n in range(10):
        await add(http, Title=f"{n}")
    entries = (await http.get("/api/log/useraudit/")).json()["results"]
    for date in {entry["date"] for entry in entries}:
        result = await numbers(http, "/api/log/useraudit/", fromDate=date, toDate=date)
        assert result == [number(entry) for entry in entries if entry["date"] == date]


async def test_user_management_shows_changes_of_clients(http: httpx.AsyncClient) -> None:
    await add(http)
    await http.post("/api/client/", json={"name": "studio", "roles": ["viewer"]})
    await add(http)
    await http.delete("/api/client/studio")
    body = (await http.get("/api/log/usermanagement/")).json()
    assert [(number(entry), entry["message"], entry["username"]) for entry in body["results"]] == [
        (1, "client.registered client admin", "system"),
        (2, "client.key_issued client admin", "system"),
        (4, "client.registered client studio", "admin"),
        (5, "client.key_issued client studio", "admin"),
        (7, "client.deleted client studio", "admin"),
    ]
    assert body["totalCount"] == 5
    assert await numbers(http, "/api/log/usermanagement/", queryOrder="DESC", startIndex=1, pageSize=2) == [5, 4]


@pytest.mark.parametrize("path", ["/api/log/useraudit/", "/api/log/usermanagement/"])
async def test_actions_are_of_level_info(http: httpx.AsyncClient, path: str) -> None:
    assert await numbers(http, path, logLevels="Info") == [1, 2]
    assert await numbers(http, path, logLevels="Error,2") == [1, 2]
    assert await numbers(http, path, logLevels="Error,Warn") == []
    assert await numbers(http, path, fromDate="2101-01-01") == []
    assert await numbers(http, path, fromDate="2101-01-01", toDate="2001-01-01") == []
    assert await numbers(http, path, startIndex=2) == []


async def test_an_id_names_one_entry_on_all_paths(http: httpx.AsyncClient, inner: Core) -> None:
    viewer, auditor = [{"API-KEY": await introduce(inner, role, role)} for role in ("viewer", "auditor")]
    key = str((await add(http))["id"])
    for _ in range(5):
        await write(http, Id=key)
    shown: dict[int, dict[str, Any]] = {}
    for path in ("/api/log/", f"/api/log/event/{key}", "/api/log/useraudit/", "/api/log/usermanagement/"):
        for entry in (await http.get(path, params={"pageSize": 1000})).json()["results"]:
            assert shown.setdefault(entry["id"], entry) == entry, path
    assert len(shown) >= 5 + await last(inner)
    for of, entry in shown.items():
        assert (await http.get(f"/api/log/{of}", headers=auditor)).json() == entry
        answer = await http.get(f"/api/log/{of}", headers=viewer)
        assert answer.status_code == (204 if entry["logger"] == "audit" else 200)
    assert (await http.get(f"/api/log/{2 * await last(inner) + 2}")).status_code == 204


async def test_the_two_audit_logs_are_for_auditors(http: httpx.AsyncClient, inner: Core) -> None:
    viewer, auditor = [{"API-KEY": await introduce(inner, role, role)} for role in ("viewer", "auditor")]
    await write(http)
    for path in ("/api/log/useraudit/", "/api/log/usermanagement/"):
        assert_problem(await http.get(path, headers=viewer), 403)
        assert (await http.get(path, headers=auditor)).status_code == 200
    for path in ("/api/log/", "/api/log/1"):
        for headers in (viewer, auditor):
            assert (await http.get(path, headers=headers)).status_code == 200
    for headers in (viewer, auditor):
        assert_problem(await http.post("/api/log/", json={"Message": "x", "Level": 1}, headers=headers), 403)
