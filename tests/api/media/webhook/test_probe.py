"""`POST /webhook/{id}/test/`: a sample notification is sent at once, in the way of a real one."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any
from urllib.parse import parse_qs

import httpx
import psycopg
import pytest
from aiohttp import web

from api.wiring.core import Core
from tests.api.asking import UNKNOWN, add, assert_problem, last
from tests.api.media.webhook.callbacks_given import add_callback, sealed
from tests.api.media.webhook.deliveries_given import Deliveries
from tests.api.serving import serving
from tests.support.clock import NOON
from tests.workers.webhook.sender.sending import Got, Receiver

SAMPLE: dict[str, Any] = {
    "eventId": "00000000-0000-0000-0000-000000000000",
    "referenceId": "",
    "externalId": "",
    "state": "PRE_LIVE",
    "stateChanged": False,
    "metadataChanged": False,
    "thumbnailChanged": False,
    "isForced": True,
    "audioChanged": False,
    "mp4State": "NONE",
    "mp4StateChanged": False,
    "chapterPointsChanged": False,
    "assetsChanged": False,
    "provisionState": None,
    "provisionStateChanged": False,
    "capturingLive2VodFlagChanged": False,
    "action": "Updated",
}


async def made(http: httpx.AsyncClient, url: str, **fields: Any) -> tuple[str, str]:
    """The path and the secret of a new webhook."""
    answer = await http.post("/api/webhook/event/" if "eventId" in fields else "/api/webhook/", json={"webhookUrl": url, **fields})
    assert answer.status_code == 200, answer.text
    return f"/api/webhook/{answer.json()['id']}", answer.json()["secret"]


def signature(secret: str, got: Got) -> str:
    """The signature of the specification, made without our code."""
    signed = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


async def test_a_sample_is_sent_signed_and_the_response_shown(http: httpx.AsyncClient, inner: Core) -> None:
    async with Receiver(lambda _: web.Response(text="thanks")) as receiver:
        path, secret = await made(http, receiver.url + "/hook")
        before = await last(inner)
        answer = await http.post(f"{path}/test/")
        [got] = receiver.got
    shown = answer.json()
    assert answer.status_code == 200
    assert 0 < shown.pop("seconds") < 15
    assert shown == {
        "id": got.id,
        "delivered": True,
        "status": 200,
        "error": None,
        "address": "127.0.0.1",
        "response": "thanks",
    }
    assert (got.path, list(json.loads(got.body).items())) == ("/hook", list(SAMPLE.items()))
    assert got.headers["webhook-timestamp"] == str(int(NOON.timestamp()))
    assert got.headers["webhook-signature"] == signature(secret, got)
    assert got.headers["content-type"] == "application/json"
    assert (await http.get(f"{path}/deliveries/")).json()["results"] == []
    assert await last(inner) == before


async def test_a_sample_uses_credentials_headers_and_form_even_when_disabled(http: httpx.AsyncClient) -> None:
    event = (await add(http))["id"]
    headers = json.dumps({"headers": [{"name": "X-Token", "value": "swordfish"}]})
    async with Receiver() as receiver:
        path, secret = await made(
            http,
            receiver.url,
            eventId=event,
            useJsonBody=False,
            useHttpBasicAuthentication=True,
            username="u",
            password="p",
            additionalPropertiesJson=headers,
            disabledAt="2031-01-02",
        )
        assert (await http.post(f"{path}/test/")).json()["delivered"] is True
        [got] = receiver.got
    assert (got.headers["authorization"], got.headers["x-token"]) == ("Basic dTpw", "swordfish")
    assert got.headers["content-type"] == "application/x-www-form-urlencoded"
    form = parse_qs(got.body.decode(), keep_blank_values=True, strict_parsing=True)
    assert (len(form), form["IsForced"], form["ReferenceId"], form["Action"]) == (17, ["true"], [""], ["Updated"])
    assert got.headers["webhook-signature"] == signature(secret, got)


async def test_a_callback_gets_a_sample_job_at_the_whole_address_of_its_latest_job(http: httpx.AsyncClient, inner: Core) -> None:
    async with Receiver() as receiver:
        key = await add_callback(inner, receiver.url + "/hook")
        assert (await http.post(f"/api/webhook/{key}/test/")).json()["delivered"] is True
        assert (receiver.got.pop().query, receiver.got) == ("", [])
        for position, token in enumerate(("old", "s3cret"), start=1):
            whole = receiver.url.replace("//", "//u:p@") + f"/hook?token={token}"
            await Deliveries(inner, key).make_callback(position, job=17, sealed_url=await sealed(inner, whole))
        secret = (await http.post(f"/api/webhook/{key}/secret/")).json()["secret"]
        shown = await http.post(f"/api/webhook/{key}/test/")
        [got] = receiver.got
    assert (shown.json()["delivered"], "s3cret" in shown.text) == (True, False)
    reported = json.loads(got.body)
    assert (reported["job_id"], reported["status"], reported["client"], reported["time"]) == (
        0,
        "completed",
        "admin",
        "2031-01-02T12:00:00.000Z",
    )
    assert (got.path, got.query, got.headers["authorization"]) == ("/hook", "token=s3cret", "Basic dTpw")
    assert signature(secret, got) in got.headers["webhook-signature"].split(" ")


@pytest.mark.parametrize(("status", "expected"), [(500, "500 Internal Server Error"), (302, "302 Found"), (410, "410 Gone")])
async def test_a_failed_test_is_reported_and_changes_nothing(
    http: httpx.AsyncClient, inner: Core, status: int, expected: str
) -> None:
    async with Receiver(lambda _: web.Response(status=status, text="no", headers={"location": "/elsewhere"})) as receiver:
        path, _ = await made(http, receiver.url)
        before = await last(inner)
        shown = (await http.post(f"{path}/test/")).json()
        assert len(receiver.got) == 1
    assert (shown["delivered"], shown["status"], shown["error"], shown["response"]) == (
        False,
        status,
        f"The answer was {expected}.",
        "no",
    )
    assert (await http.get(path)).json()["disabledAt"] is None
    assert await last(inner) == before


async def test_without_an_answer_there_is_no_status(http: httpx.AsyncClient) -> None:
    async with Receiver() as receiver:
        url = receiver.url
    path, _ = await made(http, url)
    shown = (await http.post(f"{path}/test/")).json()
    assert (shown["delivered"], shown["status"], shown["address"], shown["response"]) == (False, None, "", "")
    assert shown["error"].startswith("The host cannot be reached")


async def test_the_outbound_guard_applies_to_samples(inner: Core, database_url: str) -> None:
    async with Receiver() as receiver, serving(inner, database_url, lambda _: {}) as guarded:
        path, _ = await made(guarded, receiver.url + "/very-secret")
        shown = (await guarded.post(f"{path}/test/")).json()
        assert receiver.got == []
    assert (shown["delivered"], shown["status"]) == (False, None)
    assert "very-secret" not in shown["error"]


async def test_each_test_has_an_id_of_its_own(http: httpx.AsyncClient) -> None:
    async with Receiver() as receiver:
        path, _ = await made(http, receiver.url)
        shown = [(await http.post(f"{path}/test/")).json()["id"] for _ in range(3)]
        assert shown == [got.id for got in receiver.got]
    assert len(set(shown)) == 3


async def test_unreadable_secrets_are_an_error_and_nothing_is_sent(http: httpx.AsyncClient, database_url: str) -> None:
    async with Receiver() as receiver:
        path, _ = await made(http, receiver.url)
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute("UPDATE vault SET ciphertext = set_byte(ciphertext, 0, get_byte(ciphertext, 0) # 1)")
        shown = (await http.post(f"{path}/test/")).json()
        assert receiver.got == []
    assert (shown["delivered"], shown["error"]) == (False, "The webhook's secrets cannot be decrypted.")


async def test_a_missing_webhook_is_404(http: httpx.AsyncClient) -> None:
    async with Receiver() as receiver:
        path, _ = await made(http, receiver.url)
        await http.delete(path)
        for gone in (path, f"/api/webhook/{UNKNOWN}"):
            assert_problem(await http.post(f"{gone}/test/"), 404)
        assert receiver.got == []
