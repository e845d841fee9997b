"""Custom properties of all kinds of owners over HTTP; see docs/reference/api/custom-properties.md."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, assert_problem, fields_of, last, logged, new_id, topics
from tests.api.media.owners import OWNERS, Owner

pytestmark = pytest.mark.parametrize("of", OWNERS, ids=lambda of: of.owner_kind)


async def test_a_property_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    body = {of.owner_id: owner, "category": "genre", "key": "main", "value": "football"}
    added = await http.post(f"{of.path}/", json=body)
    key = added.json()["id"]
    assert (added.status_code, added.headers["etag"]) == (200, '"1"')
    assert added.json() == of.shown(key, owner, "genre", "main", "football")
    assert await of.of(http, owner) == [added.json()]

    changed = await http.post(
        f"{of.path}/", json={of.owner_id.upper(): owner, "Category": "genre", "KEY": "main", "Value": "tennis"}
    )
    assert (changed.json(), changed.headers["etag"]) == (of.shown(key, owner, "genre", "main", "tennis"), '"2"')
    read = await http.get(f"{of.path}/{key}")
    assert (read.json(), read.headers["etag"]) == (changed.json(), '"2"')
    assert await topics(inner, f"{of.kind}:{key}") == [f"{of.kind}.registered", f"{of.kind}.amended"]
    assert (await logged(inner, f"{of.kind}:{key}"))[1].data.keys() - {"timestamp"} == {"value"}


async def test_the_same_write_twice_leaves_one_event(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    first = await of.put(http, owner, value="football")
    before = await last(inner)
    assert await of.put(http, owner, value="football") == first
    entries = [{"category": "genre", "key": "main", "value": "football"}, {"id": first["id"]}]
    assert (await http.post(f"{of.path}/bulk/{owner}", json=entries)).json() == [first, first]
    assert await last(inner) == before


async def test_with_an_id_absent_fields_stay_and_the_value_may_be_null(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    key = (await of.put(http, owner, value="football"))["id"]
    changes: list[tuple[dict[str, str | None], tuple[str, str, str | None]]] = [
        ({"key": "other"}, ("genre", "other", "football")),
        ({"category": None, "value": None}, ("genre", "other", None)),
        ({"category": "", "key": ""}, ("", "", None)),
        ({"value": ""}, ("", "", "")),
        ({of.owner_id: owner}, ("", "", "")),
    ]
    for sent, shown in changes:
        answer = await http.post(f"{of.path}/", json={"id": key, **sent})
        assert answer.json() == of.shown(key, owner, *shown), sent
    assert (await of.put(http, owner, "", ""))["value"] == ""  # absent: left as it is
    assert len(await topics(inner, f"{of.kind}:{key}")) == 5


async def test_owner_category_and_key_are_required_on_add(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    before = await last(inner)
    assert fields_of(await http.post(f"{of.path}/", json={of.owner_id: owner})) == ["category", "key"]
    assert fields_of(await http.post(f"{of.path}/", json={of.owner_id: owner, "category": "a", "key": None})) == ["key"]
    assert fields_of(await http.post(f"{of.path}/", json={"category": "a", "key": "b"})) == [of.owner_id]
    assert fields_of(await http.post(f"{of.path}/bulk/{owner}", json=[{"category": "a", "key": "b"}, {"key": "c"}])) == [
        "[1].category"
    ]
    assert await last(inner) == before
    assert (await of.put(http, owner, "a", "b"))["value"] is None


async def test_unknown_owners_and_properties_are_404(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    before = await last(inner)
    pair = {"category": "a", "key": "b"}
    assert_problem(await http.post(f"{of.path}/", json={**pair, of.owner_id: UNKNOWN}), 404)
    assert_problem(await http.post(f"{of.path}/", json={**pair, of.owner_id: owner, "id": UNKNOWN}), 404)
    assert_problem(await http.post(f"{of.path}/bulk/{UNKNOWN}", json=[pair]), 404)
    assert_problem(await http.post(f"{of.path}/bulk/{UNKNOWN}", json=[]), 404)
    assert_problem(await http.get(f"{of.path}/{UNKNOWN}"), 404)
    assert_problem(await http.delete(f"{of.path}/{UNKNOWN}"), 404)
    for source, target in ((owner, UNKNOWN), (UNKNOWN, owner), (UNKNOWN, UNKNOWN)):
        assert_problem(await http.get(f"{of.path}/clone/", params={of.source_id: source, of.target_id: target}), 404)
    assert await of.find(http, **{of.owner_id: UNKNOWN}) == []
    assert await last(inner) == before


async def test_a_known_id_with_the_pair_or_owner_of_another_property_is_409(
    http: httpx.AsyncClient, inner: Core, of: Owner
) -> None:
    owner, other = await of.make(http), await of.make(http, "News")
    key = (await of.put(http, owner, value="1"))["id"]
    await of.put(http, owner, key="second", value="2")
    before = await last(inner)
    assert_problem(await http.post(f"{of.path}/", json={"id": key, "key": "second"}), 409)
    assert_problem(await http.post(f"{of.path}/bulk/{owner}", json=[{"id": key, "key": "second"}]), 409)
    assert_problem(await http.post(f"{of.path}/bulk/{owner}", json=[{"id": new_id(), "category": "genre", "key": "main"}]), 409)
    assert_problem(await http.post(f"{of.path}/", json={"id": key, of.owner_id: other}), 409)
    assert_problem(await http.post(f"{of.path}/bulk/{other}", json=[{"id": key, "category": "x", "key": "y"}]), 409)
    assert await last(inner) == before
    await of.put(http, other, value="the pair is free there")


async def test_a_bulk_adds_and_changes_and_never_removes(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner, given = await of.make(http), new_id()
    retained = await of.put(http, owner, key="kept", value="k")
    changed = await of.put(http, owner, key="changed", value="1")
    renamed = await of.put(http, owner, key="renamed", value="r")
    entries = [
        {"category": "genre", "key": "new", "value": "n"},
        {"category": "genre", "key": "changed", "value": "2"},
        {"id": renamed["id"], "key": "Renamed"},
        {"Id": given, "Category": "genre", "Key": "given"},
    ]
    answer = await http.post(f"{of.path}/bulk/{owner}", json=entries)
    assert answer.status_code == 200
    new = answer.json()[0]["id"]
    assert answer.json() == [
        of.shown(new, owner, "genre", "new", "n"),
        of.shown(changed["id"], owner, "genre", "changed", "2"),
        of.shown(renamed["id"], owner, "genre", "Renamed", "r"),
        of.shown(given, owner, "genre", "given", None),
    ]
    assert await of.of(http, owner) == sorted([retained, *answer.json()], key=lambda record: record["key"])
    assert await topics(inner, f"{of.kind}:{given}") == [f"{of.kind}.registered"]
    commands = {event.cause["command_id"] for event in (await logged(inner))[-4:]}
    assert len(commands) == 1


async def test_of_entries_for_one_property_the_last_counts(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner, a, b = await of.make(http), new_id(), new_id()
    stored = await of.put(http, owner, key="stored", value="0")
    entries: list[dict[str, Any]] = [
        {"category": "c", "key": "k", "value": "1"},
        {"category": "c", "key": "k", "value": "2"},
        {"id": a, "category": "c", "key": "a", "value": "3"},
        {"id": a, "category": "c", "key": "A", "value": "4"},
        {"id": b, "category": "c", "key": "k", "value": "5"},
        {"id": stored["id"], "value": "6"},
        {"category": "genre", "key": "stored", "value": "7"},
    ]
    answer = await http.post(f"{of.path}/bulk/{owner}", json=entries)
    won_b = of.shown(b, owner, "c", "k", "5")
    won_a = of.shown(a, owner, "c", "A", "4")
    won_stored = {**stored, "value": "7"}
    assert answer.json() == [won_b, won_b, won_a, won_a, won_b, won_stored, won_stored]
    assert await of.of(http, owner) == [won_a, won_b, won_stored]
    assert [event.topic.split(".")[1] for event in await logged(inner) if event.stream.startswith(of.kind)] == [
        "registered", "registered", "registered", "amended",
    ]  # fmt: skip


async def test_a_bulk_may_swap_pairs_and_reuse_a_pair_that_it_frees(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    first, second = [(await of.put(http, owner, key=key, value=key))["id"] for key in ("one", "two")]
    swapped = await http.post(f"{of.path}/bulk/{owner}", json=[{"id": first, "key": "two"}, {"id": second, "key": "one"}])
    assert [(shown["key"], shown["value"]) for shown in swapped.json()] == [("two", "one"), ("one", "two")]
    freed = [{"id": first, "key": "three"}, {"category": "genre", "key": "two", "value": "new"}]
    answer = await http.post(f"{of.path}/bulk/{owner}", json=freed)
    assert answer.json()[1]["id"] not in (first, second)
    assert {shown["key"]: shown["value"] for shown in await of.of(http, owner)} == {"one": "two", "two": "new", "three": "one"}


async def test_a_bulk_is_all_or_nothing(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    before = await last(inner)
    good = {"category": "a", "key": "b", "value": "c"}
    wrong: Any
    for wrong in ({"category": "a"}, {"id": "x", **good}, {**good, "key": "k" * 301}, {**good, "value": 7}, None, [], "x"):
        assert (await http.post(f"{of.path}/bulk/{owner}", json=[good, wrong])).status_code == 400, wrong
    for body in ({}, good, None, "x", [[good]]):
        assert (await http.post(f"{of.path}/bulk/{owner}", json=body)).status_code == 400, body
    assert (await http.post(f"{of.path}/bulk/{owner}", json=[{**good, "key": f"{n}"} for n in range(1001)])).status_code == 400
    assert await last(inner) == before
    assert (await http.post(f"{of.path}/bulk/{owner}", json=[])).json() == []
    answer = await http.post(f"{of.path}/bulk/{owner}", json=[{**good, "key": f"{n}"} for n in range(1000)])
    assert [shown["key"] for shown in answer.json()] == [f"{n}" for n in range(1000)]
    assert len(await of.of(http, owner)) == 1000


async def test_filters_are_exact_and_combine(http: httpx.AsyncClient, of: Owner) -> None:
    owner, other = await of.make(http), await of.make(http, "News")
    plain = await of.put(http, owner, "a", "k", value="v")
    empty = await of.put(http, owner, "", "", value="")
    null = await of.put(http, owner, "a", "K", value=None)
    awkward = await of.put(http, other, "100%", "a_b\\", value="é & 日本")
    for filters, result in [
        ({}, [plain, empty, null, awkward]),
        ({of.owner_id: owner}, [plain, empty, null]),
        ({of.owner_id: owner, "category": "a"}, [plain, null]),
        ({"category": "a", "key": "k"}, [plain]),
        ({"CATEGORY": "A"}, []),
        ({"category": ""}, [empty]),
        ({"key": ""}, [empty]),
        ({"value": ""}, [empty]),
        ({"value": "v"}, [plain]),
        ({"category": "100%"}, [awkward]),
        ({"category": "%"}, []),
        ({"key": "a_b\\"}, [awkward]),
        ({"value": "é & 日本"}, [awkward]),
        ({of.owner_id: other, "value": "v"}, []),
        ({"unheard": "of"}, [plain, empty, null, awkward]),
    ]:
        shown = await of.find(http, **filters)
        assert sorted(record["id"] for record in shown) == sorted(record["id"] for record in result), filters
    assert [record["id"] for record in await of.find(http, **{of.owner_id: owner})] == [empty["id"], null["id"], plain["id"]]
    assert fields_of(await http.get(f"{of.path}/?{of.owner_id}=")) == [of.owner_id]
    assert fields_of(await http.get(f"{of.path}/?{of.owner_id}=x")) == [of.owner_id]


async def test_delete_by_filter_needs_a_filter_and_counts(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner, other = await of.make(http), await of.make(http, "News")
    for event in (owner, other):
        for category, key in (("a", "1"), ("a", "2"), ("", "3")):
            await of.put(http, event, category, key, value=key)
    before = await last(inner)
    for query in ("", "?unheard=of", "?noCache=true"):
        assert fields_of(await http.delete(f"{of.path}/{query}")) == [of.owner_id, "category", "key", "value"]
    for query in (f"{of.owner_id}=x", f"{of.owner_id}="):
        assert fields_of(await http.delete(f"{of.path}/?{query}")) == [of.owner_id]
    for query in (f"{of.owner_id}={UNKNOWN}", "category=A", "value=%25", f"{of.owner_id}={owner}&value=nothing"):
        assert (await http.delete(f"{of.path}/?{query}")).json() == {"deletedCount": 0}
    assert await last(inner) == before
    for query, count in (
        (f"{of.owner_id}={owner}&category=a&key=1", 1),
        ("category=", 2),
        ("category=a&x=y", 3),
        ("category=a", 0),
    ):
        answer = await http.delete(f"{of.path}?{query}")
        assert (answer.status_code, answer.json()) == (200, {"deletedCount": count}), query
    assert await of.find(http) == []
    assert [event.topic for event in (await logged(inner))[-6:]] == [f"{of.kind}.deleted"] * 6


async def test_a_deleted_property_is_gone_and_its_pair_is_free(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    shown = await of.put(http, owner, value="v")
    key = shown["id"]
    assert_problem(await http.delete(f"{of.path}/{key}", headers={"If-Match": '"9"'}), 412)
    deleted = await http.delete(f"{of.path}/{key}")
    assert (deleted.status_code, deleted.json()) == (200, shown)
    assert_problem(await http.get(f"{of.path}/{key}"), 404)
    assert_problem(await http.delete(f"{of.path}/{key}"), 404)
    assert_problem(await http.post(f"{of.path}/", json={"id": key, "value": "x"}), 404)
    assert (await of.of(http, owner), await of.find(http)) == ([], [])
    again = await of.put(http, owner)
    assert (again["id"] != key, again["value"]) == (True, None)
    revived = await http.post(f"{of.path}/bulk/{owner}", json=[{"id": key, "category": "genre", "key": "other"}])
    assert revived.json() == [of.shown(key, owner, "genre", "other", None)]
    assert (await topics(inner, f"{of.kind}:{key}"))[-1] == f"{of.kind}.restored"


async def test_past_states_are_shown_as_a_get_showed_them(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    first = await of.put(http, owner, value="1")
    second = await of.put(http, owner, value="2")
    await http.delete(f"{of.path}/{first['id']}")
    for version, shown in ((1, first), (2, second), (3, second)):
        state = await http.get(f"/api/audit/{of.kind}/{first['id']}/state?version={version}")
        assert state.json()["state"] == shown


async def test_a_repeat_under_one_idempotency_key_gives_the_first_answer(http: httpx.AsyncClient, inner: Core, of: Owner) -> None:
    owner = await of.make(http)
    single = {of.owner_id: owner, "category": "a", "key": "single"}
    for path, body in ((f"{of.path}/", single), (f"{of.path}/bulk/{owner}", [{"category": "a", "key": "bulk"}])):
        headers = {"Idempotency-Key": path}
        first = await http.post(path, json=body, headers=headers)
        before = await last(inner)
        assert (await http.post(path, json=body, headers=headers)).content == first.content
        assert await last(inner) == before


async def test_if_match_is_compared_with_the_property_of_the_pair(http: httpx.AsyncClient, of: Owner) -> None:
    owner = await of.make(http)
    body = {of.owner_id: owner, "category": "a", "key": "b", "value": "c"}
    assert_problem(await http.post(f"{of.path}/", json=body, headers={"If-Match": '"1"'}), 412)
    await of.put(http, owner, "a", "b")
    assert_problem(await http.post(f"{of.path}/", json=body, headers={"If-Match": '"2"'}), 412)
    assert (await http.post(f"{of.path}/", json=body, headers={"If-Match": '"1"'})).headers["etag"] == '"2"'


async def test_names_may_have_300_characters_of_any_script_and_values_any_size(
    http: httpx.AsyncClient, inner: Core, of: Owner
) -> None:
    owner = await of.make(http)
    names = ["".join(chr(0x20000 + n * 7 + start) for n in range(300)) for start in (0, 3000)]
    frame = len(f'{{"{of.owner_id}":"{owner}","category":"c","key":"k","value":""}}')
    huge = "x" * (1024 * 1024 - frame)
    assert (await of.put(http, owner, names[0], names[1], value=names[0]))["key"] == names[1]
    text = f'{{"{of.owner_id}":"{owner}","category":"c","key":"k","value":"{huge}"}}'
    answer = await http.post(f"{of.path}/", content=text.encode(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["value"]) == (200, huge)
    assert [record["category"] for record in await of.find(http, category=names[0], key=names[1])] == [names[0]]
    assert len(await of.of(http, owner)) == 2
    before = await last(inner)
    for field in ("category", "key"):
        body = {of.owner_id: owner, "category": "a", "key": "b", field: "x" * 301}
        assert fields_of(await http.post(f"{of.path}/", json=body)) == [field]
    assert await last(inner) == before
