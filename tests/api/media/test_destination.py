"""Destinations and their properties over HTTP: the response and the appended events. Targets are twins in memory."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from api.wiring.core import Core
from api.wiring.parts import RefusedTargets
from domain.destination.targets import Target
from tests.api.asking import UNKNOWN, assert_problem, fields_of, last, logged, topics
from tests.api.media.publishing import S3, add_destination
from tests.support.application import introduce
from tests.support.services import services
from tests.support.targets.memory import MemoryTarget
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.ports.targets import TargetFailed, Targets

PATH = "/api/media/destination"
PROPERTY = "/api/media/destinationproperty"


@pytest.fixture
def target() -> MemoryTarget:
    return MemoryTarget()


@pytest.fixture
def services_by_type(
    inner: Core, database_url: str, outbound: GuardedClient, media_root: Any, target: MemoryTarget
) -> dict[Any, Any]:
    return services(
        inner,
        outbound=outbound,
        files=MediaDirectory(media_root),
        given={Targets: target, RefusedTargets: RefusedTargets({Target.FILESYSTEM: "has no root here"})},
    )


async def shown(http: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await http.get(f"{PATH}/{key}")
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


async def test_a_destination_is_added_changed_read_and_deleted(http: httpx.AsyncClient, inner: Core) -> None:
    added = await http.post(f"{PATH}/", json={"name": "One", "target": 5, "configJson": json.dumps(S3), "active": True})
    first = added.json()
    text = json.dumps({**S3, "secretAccessKey": None})
    assert first == {"id": first["id"], "name": "One", "target": 5, "configJson": text, "active": False}
    changed = await http.put(f"{PATH}/{first['id']}/", json={"NAME": "Two", "active": True})
    assert (changed.status_code, changed.json()) == (200, {**first, "name": "Two"})
    assert await shown(http, first["id"]) == changed.json()
    assert (await http.delete(f"{PATH}/{first['id']}")).json() == changed.json()
    assert_problem(await http.get(f"{PATH}/{first['id']}"), 404)
    assert await topics(inner, f"destination:{first['id']}") == [
        "destination.registered",
        "destination.amended",
        "destination.deleted",
    ]
    assert "sk-marked" not in str([entry.data for entry in await logged(inner, f"destination:{first['id']}")])


async def test_what_a_get_shows_can_be_put_back(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_destination(http, active=True)
    before = await shown(http, key)
    again = await http.put(f"{PATH}/{key}", json=before)
    assert (again.json(), again.headers["etag"]) == (before, '"2"')
    assert len(await topics(inner, f"destination:{key}")) == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"target": 9}, "target"),
        ({"target": "INSTAGRAM"}, "target"),
        ({"destinationJson": "no JSON"}, "destinationJson"),
        ({"destinationJson": "[]"}, "destinationJson"),
        ({"destinationJson": "{}"}, "destinationJson.endpoint"),
        ({"destinationJson": json.dumps({**S3, "secretAccessKey": None})}, "destinationJson.secretAccessKey"),
        ({"target": "FILESYSTEM", "destinationJson": '{"path": "a"}'}, "target"),
        ({"name": " "}, "name"),
        ({"configJson": "{}"}, "configJson"),
    ],
)
async def test_what_is_wrong_is_400_at_its_field(http: httpx.AsyncClient, inner: Core, body: dict[str, Any], field: str) -> None:
    before = await last(inner)
    answer = await http.post(f"{PATH}/", json={"name": "x", "target": "S3", "destinationJson": json.dumps(S3), **body})
    assert_problem(answer, 400)
    assert field in fields_of(answer)
    assert await last(inner) == before


async def test_a_secret_does_not_go_to_another_address_or_target(http: httpx.AsyncClient) -> None:
    key = await add_destination(http)
    moved = json.dumps({**S3, "endpoint": "https://evil.example", "secretAccessKey": None})
    answer = await http.put(f"{PATH}/{key}", json={"destinationJson": moved})
    assert_problem(answer, 400)
    assert "destinationJson.secretAccessKey" in fields_of(answer)
    assert_problem(await http.put(f"{PATH}/{key}", json={"target": "HTTP"}), 400)
    sftp = {"host": "h", "path": "p", "username": "u", "password": None}
    answer = await http.put(f"{PATH}/{key}", json={"target": "SFTP", "destinationJson": json.dumps(sftp)})
    assert "destinationJson.password" in fields_of(answer)


async def test_a_password_does_not_go_to_a_server_that_proves_to_be_another(http: httpx.AsyncClient) -> None:
    """The address was the same, and whoever sat in the network between got the password."""
    sftp = {"host": "h.example", "path": "p", "username": "u", "password": "secret", "hostKey": "ssh-ed25519 AAAA"}
    key = await add_destination(http, target="SFTP", destinationJson=json.dumps(sftp))
    for other in ("ssh-ed25519 BBBB", "ssh-ed25519 AAAA/b", "", None):
        sent = {**sftp, "password": None, "hostKey": other}
        answer = await http.put(f"{PATH}/{key}", json={"destinationJson": json.dumps(sent)})
        assert_problem(answer, 400)
        assert fields_of(answer) == ["destinationJson.password"]
    same = {**sftp, "password": None, "path": "other", "hostKey": " ssh-ed25519 AAAA "}
    assert (await http.put(f"{PATH}/{key}", json={"destinationJson": json.dumps(same)})).status_code == 200
    anew = {**sftp, "hostKey": "ssh-ed25519 BBBB"}
    assert (await http.put(f"{PATH}/{key}", json={"destinationJson": json.dumps(anew)})).status_code == 200


async def test_an_activation_tries_the_target_with_its_secrets(http: httpx.AsyncClient, target: MemoryTarget) -> None:
    key = await add_destination(http)
    answer = await http.put(f"{PATH}/activate/{key}")
    assert answer.json() == {
        "actionTitle": "Active",
        "actionDescription": "The target was reached; publications can be sent to it.",
        "actionRequired": False,
    }
    assert (target.opened, target.calls) == ([(Target.S3, S3)], ["check", "close"])
    assert (await shown(http, key))["active"] is True


async def test_an_activation_that_fails_says_why_and_leaves_the_destination_as_it_is(
    http: httpx.AsyncClient, inner: Core, target: MemoryTarget
) -> None:
    key = await add_destination(http)
    target.fault = TargetFailed("destination", "The bucket refuses to be written to; give the key the right to put objects.")
    before = await last(inner)
    answer = await http.put(f"{PATH}/activate/{key}")
    assert answer.json() == {"actionTitle": "Action required", "actionDescription": str(target.fault), "actionRequired": True}
    assert (await last(inner), (await shown(http, key))["active"]) == (before, False)
    assert_problem(await http.put(f"{PATH}/activate/{UNKNOWN}"), 404)


async def test_if_match_counts_for_an_activation(http: httpx.AsyncClient, inner: Core, target: MemoryTarget) -> None:
    key = await add_destination(http)
    before = await last(inner)
    assert_problem(await http.put(f"{PATH}/activate/{key}", headers={"If-Match": '"9"'}), 412)
    assert (target.opened, await last(inner)) == ([], before)
    assert (await http.put(f"{PATH}/activate/{key}", headers={"If-Match": '"1"'})).status_code == 200
    assert (await shown(http, key))["active"] is True


async def test_what_was_changed_while_it_was_tried_is_not_active(http: httpx.AsyncClient, target: MemoryTarget) -> None:
    key = await add_destination(http)

    async def change() -> None:
        await http.put(f"{PATH}/{key}", json={"destinationJson": json.dumps({**S3, "bucket": "other"})})

    target.before = change
    assert_problem(await http.put(f"{PATH}/activate/{key}"), 409)
    assert (await shown(http, key))["active"] is False


async def test_another_configuration_is_not_active_and_another_name_is(http: httpx.AsyncClient) -> None:
    key = await add_destination(http, active=True)
    assert (await http.put(f"{PATH}/{key}", json={"name": "Two"})).json()["active"] is True
    assert (await http.put(f"{PATH}/{key}", json={"active": False})).json()["active"] is False
    assert (await http.put(f"{PATH}/active/{key}", params={"active": "true"})).json()["active"] is True
    config = json.dumps({**S3, "secretAccessKey": "another"})
    assert (await http.put(f"{PATH}/{key}", json={"destinationJson": config})).json()["active"] is False
    assert_problem(await http.put(f"{PATH}/active/{key}"), 400)


async def test_lists_filter_by_target_and_by_what_is_active(http: httpx.AsyncClient) -> None:
    for name, target, active in (("a", "S3", True), ("b", "TWITTER", False), ("c", "YOUTUBE", True)):
        await add_destination(http, name, active=active, target=target)

    async def names(**query: Any) -> str:
        answer = await http.get(f"{PATH}/", params=query)
        assert answer.status_code == 200, answer.text
        return "".join(record["name"] for record in answer.json())

    assert await names() == "abc"
    assert await names(targetFilter="s3,2") == "ac"
    assert await names(targetFilter="TWITTER", onlyActive="true") == ""
    assert await names(onlyActive="true", noCache="true") == "ac"
    assert_problem(await http.get(f"{PATH}/", params={"targetFilter": "5,9"}), 400)


async def test_a_past_state_is_shown_as_it_was_then(http: httpx.AsyncClient) -> None:
    key = await add_destination(http, active=True)
    past = (await http.get(f"/api/audit/destination/{key}/state", params={"version": "1"})).json()
    assert past["state"] == {**(await shown(http, key)), "active": False}


async def test_a_property_is_put_by_its_pair_and_notes_who_wrote_it(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_destination(http)
    body = {"destinationId": key, "category": "web", "key": "slug", "value": "a"}
    first = (await http.post(f"{PROPERTY}/", json=body)).json()
    assert first == {**body, "id": first["id"], "client": "admin"}
    other = await introduce(inner, "studio", "operator")
    second = await http.post(f"{PROPERTY}/", json={**body, "value": "b"}, headers={"API-KEY": other})
    assert second.json() == {**first, "value": "b", "client": "studio"}
    assert (await http.get(f"{PROPERTY}/id/{first['id']}")).json() == second.json()
    assert (await http.get(f"{PROPERTY}/{key}", params={"category": "web", "key": "slug"})).json() == second.json()
    assert await topics(inner, f"destination_property:{first['id']}") == [
        "destination_property.registered",
        "destination_property.amended",
    ]
    assert_problem(await http.post(f"{PROPERTY}/", json={**body, "destinationId": UNKNOWN}), 404)
    assert_problem(await http.post(f"{PROPERTY}/", json={**body, "id": UNKNOWN}), 404)
    assert_problem(await http.post(f"{PROPERTY}/", json={"category": "web", "key": "slug"}), 400)


async def test_properties_are_listed_and_deleted_by_filter_and_by_pair(http: httpx.AsyncClient) -> None:
    key = await add_destination(http)
    for category, name in (("a", "x"), ("a", "y"), ("b", "x")):
        await http.post(f"{PROPERTY}/", json={"destinationId": key, "category": category, "key": name, "value": "v"})

    async def pairs(**query: Any) -> list[str]:
        return [record["category"] + record["key"] for record in (await http.get(f"{PROPERTY}/all/{key}", params=query)).json()]

    assert (await pairs(), await pairs(category="a"), await pairs(key="x", value="v")) == (
        ["ax", "ay", "bx"],
        ["ax", "ay"],
        ["ax", "bx"],
    )
    pair = {"category": "a", "key": "y"}
    assert (await http.delete(f"{PROPERTY}/{key}", params=pair)).json()["key"] == "y"
    assert_problem(await http.delete(f"{PROPERTY}/{key}", params=pair), 404)
    assert_problem(await http.get(f"{PROPERTY}/{key}", params=pair), 404)
    assert (await http.delete(f"{PROPERTY}/all/{key}", params={"category": "b"})).json() == {"deletedCount": 1}
    assert (await http.delete(f"{PROPERTY}/all/{key}")).json() == {"deletedCount": 1}
    assert (await http.get(f"{PROPERTY}/all/{UNKNOWN}")).json() == []
    assert_problem(await http.delete(f"{PROPERTY}/all/{UNKNOWN}"), 404)


async def test_a_destination_takes_its_properties_and_secrets_along(http: httpx.AsyncClient, inner: Core) -> None:
    key = await add_destination(http)
    first = (await http.post(f"{PROPERTY}/", json={"destinationId": key, "category": "a", "key": "b"})).json()
    assert (await http.delete(f"{PATH}/{key}")).status_code == 200
    assert_problem(await http.get(f"{PROPERTY}/id/{first['id']}"), 404)
    owned = await inner.database.row("SELECT count(*) FROM vault WHERE owner = %s", (f"destination:{key}",))
    assert owned == (0,)
