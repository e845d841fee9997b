"""Flows over HTTP: the response and the appended events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, add_flow, assert_problem, fields_of, last, logged, new_id, topics
from tests.domain.channel.texts_given import FLOW, Place, changed, without

SERVER: Place = ("flows", 0, "streamingServer", "streamingServerSpecific")
KEYLESS = changed(json.loads(changed(FLOW, (*SERVER, "primaryPublishingPoint", "srvaApiKey"), to=None)),
                  (*SERVER, "secondaryPublishingPoint", "srvaApiKey"), to=None)  # fmt: skip
SRVB = changed(FLOW, SERVER, to={"not set": "x"})
KEY_FIELDS = [
    f"configurationJson.flows[0].streamingServer.streamingServerSpecific.{point}PublishingPoint.srvaApiKey"
    for point in ("primary", "secondary")
]


async def test_a_flow_is_added_changed_and_read_back(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post("/api/flow/", json={"name": "One", "configurationJson": json.dumps(FLOW)})
    flow = added.json()
    assert (added.status_code, added.headers["etag"]) == (200, '"1"')
    assert flow == {"id": flow["id"], "name": "One", "configurationJson": KEYLESS}
    assert (await http.get(f"/api/flow/{flow['id']}?noCache=true")).json() == flow

    changed_flow = await http.put(f"/api/flow/{flow['id']}", json={"Name": "Two"})
    assert (changed_flow.status_code, changed_flow.json()) == (200, {**flow, "name": "Two"})
    assert (await http.get(f"/api/flow/{flow['id']}")).json() == changed_flow.json()
    again = await http.put(f"/api/flow/{flow['id']}", json={"name": "Two", "configurationJson": json.dumps(FLOW)})
    assert again.headers["etag"] == '"2"'
    assert await topics(inner, f"flow:{flow['id']}") == ["flow.registered", "flow.amended"]
    assert (await logged(inner, f"flow:{flow['id']}"))[1].data.keys() == {"timestamp", "name"}


async def test_a_post_with_an_id_creates_with_it_or_updates(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    body = {"id": key, "name": "One", "configurationJson": json.dumps(FLOW)}
    made = await http.post("/api/flow/", json=body)
    assert (made.status_code, made.json()["id"]) == (200, key)
    assert (await http.post("/api/flow/", json=body)).headers["etag"] == '"1"'
    assert (await http.post("/api/flow/", json={"id": key, "name": "Two"})).json() == {**made.json(), "name": "Two"}
    other = await http.post("/api/flow/", json={"id": key, "configurationJson": SRVB})
    assert other.json() == {"id": key, "name": "Two", "configurationJson": SRVB}
    assert (await http.post("/api/flow/", json={"id": key})).headers["etag"] == '"3"'

    await http.delete(f"/api/flow/{key}")
    assert fields_of(await http.post("/api/flow/", json={"id": key, "name": "x"})) == ["configurationJson"]
    assert fields_of(await http.post("/api/flow/", json={**body, "configurationJson": KEYLESS})) == KEY_FIELDS
    assert (await http.post("/api/flow/", json=body)).json() == made.json()
    assert await topics(inner, f"flow:{key}") == [
        "flow.registered", "flow.amended", "flow.amended", "flow.deleted", "flow.restored",
    ]  # fmt: skip


async def test_a_new_flow_needs_name_configuration_and_keys(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    whole = {"name": "x", "configurationJson": json.dumps(FLOW)}
    for own in ({}, {"id": UNKNOWN}):
        assert fields_of(await http.post("/api/flow/", json=own)) == ["name", "configurationJson"]
        assert fields_of(await http.post("/api/flow/", json={**own, **whole, "name": None})) == ["name"]
        assert fields_of(await http.post("/api/flow/", json={**own, **whole, "configurationJson": None})) == ["configurationJson"]
        assert fields_of(await http.post("/api/flow/", json={**own, **whole, "configurationJson": KEYLESS})) == KEY_FIELDS
        absent = without(FLOW, (*SERVER, "secondaryPublishingPoint", "srvaApiKey"))
        assert fields_of(await http.post("/api/flow/", json={**own, **whole, "configurationJson": absent})) == KEY_FIELDS[1:]
    assert await last(inner) == before


async def test_a_key_of_a_new_flow_configuration_must_come_with_it(http: httpx.AsyncClient) -> None:
    key = await add_flow(http)
    first = json.loads(KEYLESS)["flows"][0]
    second = {**first, "name": "second"}
    added = await http.put(f"/api/flow/{key}", json={"configurationJson": json.dumps({"flows": [second, first]})})
    assert fields_of(added) == KEY_FIELDS
    whole = {**FLOW["flows"][0], "name": "second"}
    added = await http.put(f"/api/flow/{key}", json={"configurationJson": json.dumps({"flows": [whole, first]})})
    assert added.status_code == 200
    shown = await http.put(f"/api/flow/{key}", json={"configurationJson": json.dumps({"flows": [first, second]})})
    assert shown.status_code == 200


async def test_what_is_wrong_is_400_with_the_path_inside_and_changes_nothing(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_flow(http)
    before = await last(inner)
    wrong: list[tuple[Any, str]] = [
        ("", ""),
        ("{", ""),
        ("{}", ".flows"),
        ('{"flows": []}', ".flows"),
        ('{"flows": {}}', ".flows"),
        (without(FLOW, ("flows", 0, "ismUrl")), ".flows[0].ismUrl"),
        (changed(FLOW, ("flows", 0, "type"), to="Other"), ".flows[0].type"),
        (changed(FLOW, ("flows", 0, "taskEngineSpecific", "more"), to=1), ".flows[0].taskEngineSpecific.more"),
        (changed(FLOW, ("flows", 0, "outputUrls", 0, "streamProtocol"), to="X"), ".flows[0].outputUrls[0].streamProtocol"),
        (changed(FLOW, (*SERVER, "primaryPublishingPoint", "srvaApiKey"), to=7), KEY_FIELDS[0].removeprefix("configurationJson")),
    ]
    for text, path in wrong:
        for answer in (
            await http.post("/api/flow/", json={"name": "x", "configurationJson": text}),
            await http.post("/api/flow/", json={"id": key, "configurationJson": text}),
            await http.put(f"/api/flow/{key}", json={"configurationJson": text}),
        ):
            assert fields_of(answer) == [f"configurationJson{path}"]
    assert fields_of(await http.post("/api/flow/", json={"id": "x", "name": "x"})) == ["id"]
    assert fields_of(await http.put(f"/api/flow/{key}", json={"name": ""})) == ["name"]
    assert await last(inner) == before


async def test_unknown_flows(http: httpx.AsyncClient, inner: Core) -> None:
    before = await last(inner)
    absent = await http.get(f"/api/flow/{UNKNOWN}")
    assert (absent.status_code, absent.content) == (204, b"")
    assert_problem(await http.get(f"/api/flow/taskengines/{UNKNOWN}"), 404)
    assert_problem(await http.put(f"/api/flow/{UNKNOWN}", json={"name": "x"}), 404)
    assert_problem(await http.put(f"/api/flow/{UNKNOWN}", json={"configurationJson": KEYLESS}), 404)
    assert_problem(await http.delete(f"/api/flow/{UNKNOWN}"), 404)
    assert await last(inner) == before


async def test_the_task_engine_is_the_first_configuration_without_its_keys(http: httpx.AsyncClient) -> None:
    key = await add_flow(http)
    answer = await http.get(f"/api/flow/taskengines/{key}/")
    assert answer.json() == {
        "name": "main",
        "flowType": 0,
        "flowDetails": {"apiUrl": "http://api", "flowGuiUrl": "http://gui"},
        "streamingServerDetails": {
            "type": "SRVA",
            "primaryPublishingPoint": {"srvaApi": "http://srva/1"},
            "secondaryPublishingPoint": {"srvaApi": "http://srva/2"},
        },
        "outputStreams": [
            {
                "streamProtocol": 0,
                "vodCdnPrimaryUrl": "http://cdn/1",
                "vodCdnSecondaryUrl": "http://cdn/2",
                "vodOriginPrimaryUrl": "http://origin/1",
                "vodOriginSecondaryUrl": "http://origin/2",
                "vodPrivateUrl": "http://private",
            }
        ],
        "callbackUrls": ["http://callback"],
        "ismUrl": "http://ism",
    }
    await http.put(f"/api/flow/{key}", json={"configurationJson": SRVB})
    server = (await http.get(f"/api/flow/taskengines/{key}")).json()["streamingServerDetails"]
    assert server == {"type": "SRVA", "primaryPublishingPoint": None, "secondaryPublishingPoint": None}


async def test_flows_are_listed_by_name(http: httpx.AsyncClient) -> None:
    for name in ("Cellar", "Attic", "Bar"):
        await add_flow(http, name)
    listed = (await http.get("/api/flow?noCache=1")).json()
    assert [(record["name"], record["configurationJson"]) for record in listed] == [
        (name, KEYLESS) for name in ("Attic", "Bar", "Cellar")
    ]


async def test_a_flow_in_use_is_not_deleted_and_its_users_are_named(http: httpx.AsyncClient, inner: Core) -> None:
    for link in ("FlowId", "RemixflowId", "ArchiverflowId"):
        key = await add_flow(http)
        last_seen = (await http.get(f"/api/flow/{key}")).json()
        event = await add(http, Title="Final", **{link: key})
        refused = await http.delete(f"/api/flow/{key}")
        assert_problem(refused, 409)
        assert event["id"] in refused.json()["detail"]
        await http.post("/api/event/", json={"Id": event["id"], link: None})
        deleted = await http.delete(f"/api/flow/{key}")
        assert (deleted.status_code, deleted.json()) == (200, last_seen)
        assert await topics(inner, f"flow:{key}") == ["flow.registered", "flow.deleted"]
        assert (await http.get(f"/api/flow/{key}")).status_code == 204
        assert_problem(await http.delete(f"/api/flow/{key}"), 404)


async def test_concurrent_posts_of_one_new_id_make_one_flow(http: httpx.AsyncClient, inner: Core) -> None:
    key = new_id()
    body = {"id": key, "configurationJson": json.dumps(FLOW)}
    answers = await asyncio.gather(*(http.post("/api/flow/", json={**body, "name": f"{n}"}) for n in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert await topics(inner, f"flow:{key}") == ["flow.registered"] + ["flow.amended"] * 9
    assert len((await http.get("/api/flow/")).json()) == 1


async def test_a_flow_is_shown_as_it_once_was(http: httpx.AsyncClient) -> None:
    key = await add_flow(http)
    first = (await http.get(f"/api/flow/{key}")).json()
    second = (await http.put(f"/api/flow/{key}", json={"name": "x", "configurationJson": SRVB})).json()
    await http.delete(f"/api/flow/{key}")
    for version, then in ((1, first), (2, second)):
        assert (await http.get(f"/api/audit/flow/{key}/state?version={version}")).json()["state"] == then
