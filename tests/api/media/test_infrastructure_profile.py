"""Infrastructure profiles over HTTP: the response and the appended events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import AWKWARD, UNKNOWN, add, add_profile, assert_problem, fields_of, last, logged, topics
from tests.domain.channel.texts_given import PROFILE, RESOURCE, changed, without

PATH = "/api/infrastructureprofile"
TEXT = json.dumps(PROFILE)


async def post(http: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await http.post(f"{PATH}/", json=body)


async def shown(http: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await http.get(f"{PATH}/{key}")
    assert answer.status_code == 200, answer.text
    profile: dict[str, Any] = answer.json()
    return profile


async def test_a_profile_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    text = f' {TEXT[:-1]} , "of the site": 1.50, "password":"shown" }}\n'
    added = await post(http, name="One", referenceId="p/1", configurationJson=text)
    profile = added.json()
    assert (added.status_code, added.headers["etag"]) == (200, '"1"')
    assert profile == {"id": profile["id"], "name": "One", "referenceId": "p/1", "configurationJson": text}
    assert await shown(http, profile["id"]) == profile

    updated = await post(http, Id=profile["id"], name="Two")
    assert (updated.status_code, updated.json()) == (200, {**profile, "name": "Two"})
    assert await shown(http, profile["id"]) == updated.json()
    again = await post(http, **updated.json())
    assert again.headers["etag"] == '"2"'
    stream = f"infrastructure_profile:{profile['id']}"
    assert await topics(inner, stream) == ["infrastructure_profile.registered", "infrastructure_profile.amended"]
    assert (await logged(inner, stream))[1].data.keys() == {"timestamp", "name"}


async def test_a_new_profile_needs_name_and_configuration(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_profile(http)
    before = await last(inner)
    assert fields_of(await post(http)) == ["name", "configurationJson"]
    assert fields_of(await post(http, name=None, configurationJson=TEXT)) == ["name"]
    assert fields_of(await post(http, name="x", configurationJson=None)) == ["configurationJson"]
    assert (await post(http, id=key, name=None, configurationJson=None)).status_code == 200
    assert_problem(await post(http, id=UNKNOWN, name="x", configurationJson=TEXT), 404)
    assert await last(inner) == before


async def test_what_is_wrong_is_400_with_the_path_inside_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_profile(http)
    before = await last(inner)
    wrong: list[tuple[Any, str]] = [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        (without(PROFILE, ("workflow",)), ".workflow"),
        (without(PROFILE, ("request", "resources")), ".request.resources"),
        (without(PROFILE, ("request", "resources", 0, "name")), ".request.resources[0].name"),
        (changed(PROFILE, ("request", "resources", 0, "type"), to="other"), ".request.resources[0].type"),
        (changed(PROFILE, ("request", "options", "isolationMode"), to="none"), ".request.options.isolationMode"),
        (changed(PROFILE, ("workflow", "termination", 0, "states"), to="x"), ".workflow.termination[0].states"),
    ]
    for text, path in wrong:
        assert fields_of(await post(http, name="x", configurationJson=text)) == [f"configurationJson{path}"]
        assert fields_of(await post(http, id=key, configurationJson=text)) == [f"configurationJson{path}"]
    assert fields_of(await post(http, id=7)) == ["id"]
    assert fields_of(await post(http, id=key, configurationJson={})) == ["configurationJson"]
    assert fields_of(await post(http, id=key, name=" ")) == ["name"]
    assert fields_of(await http.get(f"{PATH}/x")) == ["id"]
    assert await last(inner) == before


async def test_a_reference_belongs_to_one_profile(http: httpx.AsyncClient, inner: Core) -> None:
    first, other = await add_profile(http, referenceId="A"), await add_profile(http, referenceId="a")
    before = await last(inner)
    assert fields_of(await post(http, name="x", configurationJson=TEXT, referenceId="A")) == ["referenceId"]
    assert fields_of(await post(http, id=other, referenceId="A")) == ["referenceId"]
    assert await last(inner) == before
    assert (await post(http, id=first, referenceId="A", name="same")).status_code == 200
    assert (await post(http, id=first, referenceId="B")).status_code == 200
    assert (await post(http, id=other, referenceId="A")).status_code == 200
    assert (await http.delete(f"{PATH}/{first}")).status_code == 200
    assert (await post(http, id=other, referenceId="B")).json()["referenceId"] == "B"


async def test_any_number_of_profiles_may_have_no_reference(http: httpx.AsyncClient) -> None:
    for reference in (None, "", None, ""):
        assert (await shown(http, await add_profile(http, referenceId=reference)))["referenceId"] == ""
    keys = [await add_profile(http, referenceId=text) for text in ("x", "y")]
    for key, cleared in zip(keys, (None, ""), strict=True):
        assert (await post(http, id=key, referenceId=cleared)).json()["referenceId"] == ""
        assert_problem(await http.get(f"{PATH}/reference/?referenceId=x"), 404)


async def test_of_concurrent_requests_for_one_reference_one_succeeds(http: httpx.AsyncClient, inner: Core) -> None:
    keys = [await add_profile(http) for _ in range(5)]
    answers = await asyncio.gather(
        *(post(http, name="x", configurationJson=TEXT, referenceId="A") for _ in range(5)),
        *(post(http, id=key, referenceId="A") for key in keys),
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 9
    for answer in answers:
        assert answer.status_code == 200 or fields_of(answer) == ["referenceId"]
    assert [record["referenceId"] for record in (await http.get(PATH)).json()].count("A") == 1
    assert len([event for event in await logged(inner) if event.data.get("reference_id") == "A"]) == 1


async def test_a_profile_is_found_by_any_reference(http: httpx.AsyncClient) -> None:
    for text in AWKWARD:
        key = await add_profile(http, referenceId=text)
        for slash in ("", "/"):
            answer = await http.get(f"{PATH}/reference{slash}", params={"referenceId": text})
            assert answer.json() == await shown(http, key)
    assert fields_of(await http.get(f"{PATH}/reference/?referenceId=")) == ["referenceId"]
    assert fields_of(await http.get(f"{PATH}/reference/")) == ["referenceId"]
    assert_problem(await http.get(f"{PATH}/reference/?referenceId=other"), 404)


async def test_profiles_are_listed_by_name(http: httpx.AsyncClient) -> None:
    keys = {name: await add_profile(http, name) for name in ("Cellar", "Attic", "Bar")}
    listed = (await http.get(f"{PATH}?noCache=1")).json()
    assert listed == [await shown(http, keys[name]) for name in ("Attic", "Bar", "Cellar")]


async def test_the_resources_are_shown_as_they_were_sent(http: httpx.AsyncClient) -> None:
    odd = {"name": "x", "TYPE": 1, "type": "Encoder", "diskSize": 10**30, "settings": {"password": "p", "deep": [1.5, None]}}
    key = await add_profile(http, configuration={**PROFILE, "request": {**PROFILE["request"], "resources": [RESOURCE, odd]}})
    assert (await http.get(f"{PATH}/resources/{key}/")).json() == [RESOURCE, odd]
    empty: dict[str, Any] = {"request": {"resources": []}, "workflow": {}}
    assert (await http.get(f"{PATH}/resources/{await add_profile(http, configuration=empty)}")).json() == []
    assert_problem(await http.get(f"{PATH}/resources/{UNKNOWN}"), 404)


async def test_a_profile_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_profile(http, referenceId="A")
    last_seen = await shown(http, key)
    event = await add(http, Title="Final", InfrastructureProfileId=key)
    assert event["infrastructureProfile"] == "Main profile"
    refused = await http.delete(f"{PATH}/{key}")
    assert_problem(refused, 409)
    assert event["id"] in refused.json()["detail"]

    await http.delete(f"/api/event/{event['id']}")
    deleted = await http.delete(f"{PATH}/{key}")
    assert (deleted.status_code, deleted.json()) == (200, last_seen)
    stream = f"infrastructure_profile:{key}"
    assert await topics(inner, stream) == ["infrastructure_profile.registered", "infrastructure_profile.deleted"]
    assert_problem(await http.get(f"{PATH}/{key}"), 404)
    assert_problem(await http.get(f"{PATH}/reference/?referenceId=A"), 404)
    assert_problem(await post(http, id=key, name="x"), 404)
    assert await topics(inner, stream) == ["infrastructure_profile.registered", "infrastructure_profile.deleted"]


async def test_deleting_an_unknown_profile_is_400(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_profile(http)
    await http.delete(f"{PATH}/{key}")
    before = await last(inner)
    for unknown in (UNKNOWN, key, "x"):
        assert fields_of(await http.delete(f"{PATH}/{unknown}")) == ["id"]
    assert await last(inner) == before


async def test_a_profile_is_shown_as_it_once_was(http: httpx.AsyncClient) -> None:
    key = await add_profile(http, referenceId="A")
    first = await shown(http, key)
    second = (await post(http, id=key, name="x", referenceId=None)).json()
    await http.delete(f"{PATH}/{key}")
    for version, then in ((1, first), (2, second)):
        answer = await http.get(f"/api/audit/infrastructure_profile/{key}/state?version={version}")
        assert answer.json()["state"] == then
