"""The key provider over HTTP: the same request gets the same response for ever."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree
from prometheus_client import CollectorRegistry

from api.kernel.log import RequestLog
from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import Core
from domain.content_key.handlers import ContentKeyHandlers
from domain.kernel.encryption import KeyRing, SecretCipher, fingerprint
from projections.content_key.queries import ContentKeyQueries
from projections.kernel.database.database import Database
from projections.vault.master_keys import master_key_fits
from projections.vault.rotation import Rotation
from projections.vault.vault import Vault
from tests.api.asking import logged, topics
from tests.api.speke.cpix.test_encryption import DELIVERY_DECLARED, delivery
from tests.api.speke.documents import (
    FAIRPLAY,
    NAMESPACES,
    PLAYREADY,
    WIDEVINE,
    ParsedResponse,
    document_1,
    post_and_parse,
    post_document,
    version_2,
)
from tests.support.application import assembled, introduce
from tests.support.cpix.keys import certificate

BOTH = document_1(PLAYREADY, WIDEVINE)


async def test_playready_and_widevine_as_document_1_shows_them(http: httpx.AsyncClient) -> None:
    answer = await post_and_parse(http, BOTH)
    [kid], [key] = answer.kids, answer.keys
    assert (answer.root.get("id"), len(key)) == ("match-17", 16)
    assert str(UUID(kid)) == kid
    assert answer.single(".//cpix:ContentKey").get("explicitIV") == ""
    assert {system.get("kid") for system in answer.all(".//cpix:DRMSystem")} == {kid}
    playready, widevine = answer.all(".//cpix:DRMSystem")
    assert [child.tag for child in playready] == [f"{{{NAMESPACES['speke']}}}ProtectionHeader", f"{{{NAMESPACES['cpix']}}}PSSH"]
    assert [child.prefix or "none" for child in (*playready, *widevine)] == ["speke", "cpix", "none"]
    assert answer.system(WIDEVINE, "cpix:PSSH")[12:28] == UUID(WIDEVINE).bytes
    assert UUID(kid).bytes in answer.system(WIDEVINE, "cpix:PSSH")
    header = answer.system(PLAYREADY, "speke:ProtectionHeader")
    assert answer.system(PLAYREADY, "cpix:PSSH").endswith(header)
    assert "WRMHEADER" in header[10:].decode("utf-16-le")


async def test_fairplay_as_document_1_shows_it(http: httpx.AsyncClient) -> None:
    answer = await post_and_parse(http, document_1(FAIRPLAY))
    [system] = answer.all(".//cpix:DRMSystem")
    assert [(etree.QName(child).localname, child.prefix or "none") for child in system] == [
        ("URIExtXKey", "none"),
        ("KeyFormat", "none"),
        ("KeyFormatVersions", "none"),
    ]
    iv = answer.single(".//cpix:ContentKey").get("explicitIV")
    assert len(b64decode(iv or "", validate=True)) == 16
    assert answer.system(FAIRPLAY, "speke:KeyFormat") == b"com.apple.streamingkeydelivery"
    assert answer.system(FAIRPLAY, "speke:KeyFormatVersions") == b"1"
    assert answer.system(FAIRPLAY, "cpix:URIExtXKey") == f"skd://media.test/admin/match-17?kid={answer.kids[0]}".encode()


async def test_every_drm_asked_by_itself_gets_the_key_of_all(http: httpx.AsyncClient) -> None:
    answers = [
        await post_and_parse(http, document_1(*systems))
        for systems in ((WIDEVINE,), (PLAYREADY,), (FAIRPLAY,), (WIDEVINE, FAIRPLAY))
    ]
    assert len({(*answer.kids, *answer.keys) for answer in answers}) == 1


async def test_the_same_question_has_the_same_answer(http: httpx.AsyncClient) -> None:
    for body in (BOTH, document_1(FAIRPLAY), version_2(uuid4(), uuid4())):
        assert (await post_and_parse(http, body)).text == (await post_and_parse(http, body)).text
    assert (await post_and_parse(http, document_1(WIDEVINE, content_id="other"))).keys != (await post_and_parse(http, BOTH)).keys


async def test_a_kid_and_an_iv_that_are_given_stay_as_they_are(http: httpx.AsyncClient) -> None:
    kid, iv = str(uuid4()), "AAECAwQFBgcICQoLDA0ODw=="
    answer = await post_and_parse(http, document_1(WIDEVINE, FAIRPLAY, kid=kid, iv=iv))
    assert (answer.kids, answer.single(".//cpix:ContentKey").get("explicitIV")) == ([kid], iv)
    assert answer.keys == (await post_and_parse(http, document_1(PLAYREADY, kid=kid, iv=None))).keys
    assert (await post_and_parse(http, document_1(WIDEVINE))).keys != answer.keys


async def test_two_clients_never_share_a_key(http: httpx.AsyncClient, inner: Core) -> None:
    other = {"API-KEY": await introduce(inner, "packager", "keys")}
    kid = str(uuid4())
    for body in (BOTH, document_1(WIDEVINE, kid=kid)):
        ours, theirs = await post_and_parse(http, body), await post_and_parse(http, body, path="/packager/speke", **other)
        assert set(ours.keys).isdisjoint(theirs.keys)


async def test_64_first_requests_at_once_get_one_key(http: httpx.AsyncClient, inner: Core) -> None:
    answers = await asyncio.gather(*(post_and_parse(http, BOTH) for _ in range(64)))
    assert len({answer.text for answer in answers}) == 1
    assert [event.topic for event in await logged(inner) if event.topic == "content_key.issued"] == ["content_key.issued"]


async def test_version_2_says_so_and_fills_every_key(http: httpx.AsyncClient) -> None:
    kids = (uuid4(), uuid4())
    answer = await post_document(http, version_2(*kids), **{"X-Speke-Version": "2.0"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-speke-version"] == "2.0"
    assert answer.headers["x-speke-user-agent"].startswith("medialedger/")
    assert "speke-user-agent" not in answer.headers
    root = ParsedResponse(etree.fromstring(answer.content), answer.text)
    assert (root.kids, root.root.get("contentId"), root.root.get("id")) == ([str(kid) for kid in kids], "match-17", None)
    assert len(set(root.keys)) == 2
    assert len(root.all(".//cpix:HLSSignalingData")) == 12


async def test_version_1_names_the_provider_and_nothing_is_kept_on_the_way(http: httpx.AsyncClient) -> None:
    answer = await post_document(http, BOTH, **{"X-Transaction-ID": "order 66"})
    assert answer.headers["speke-user-agent"].startswith("medialedger/")
    assert "x-speke-version" not in answer.headers
    assert (answer.headers["cache-control"], answer.headers["x-transaction-id"]) == ("no-store", "order 66")
    for content_type in ("text/xml", "application/xml; charset=utf-8", "text/xml; charset=UTF-8"):
        assert (await post_document(http, BOTH, **{"content-type": content_type})).content == answer.content
    assert (await http.post("/admin/speke/", content=BOTH, headers={"content-type": "text/xml"})).content == answer.content


async def test_an_idempotency_key_keeps_no_answer(http: httpx.AsyncClient, inner: Core) -> None:
    """The answer is the same without it, and a kept one would hold keys in the clear."""
    for body in (BOTH, document_1(FAIRPLAY)):
        answer = await post_document(http, body, **{"Idempotency-Key": "k"})
        assert answer.status_code == 200
        assert "idempotency-replayed" not in answer.headers
    assert await inner.database.rows("SELECT 1 FROM idempotency_keys") == []


@pytest.mark.parametrize("role", ["keys", "operator"])
async def test_a_key_in_single_quotes_is_the_key(http: httpx.AsyncClient, inner: Core, role: str) -> None:
    key = await introduce(inner, "packager", role)
    for sent in (key, f"'{key}'"):
        assert (await post_document(http, BOTH, path="/packager/speke", **{"API-KEY": sent})).status_code == 200
    for sent in (f"'{key}", f'"{key}"', f"''{key}''", "''", "'"):
        assert (await post_document(http, BOTH, path="/packager/speke", **{"API-KEY": sent})).status_code == 401
    assert (await http.get("/api/room/", headers={"API-KEY": f"'{key}'"})).status_code == 401


async def test_a_heartbeat(http: httpx.AsyncClient) -> None:
    answer = await http.get("/admin/speke/heartbeat")
    assert (answer.status_code, answer.text, answer.headers["cache-control"]) == (200, "OK\n", "no-store")
    assert answer.headers["speke-user-agent"].startswith("medialedger/")


async def test_settings_change_the_next_answer_but_no_key(http: httpx.AsyncClient, inner: Core) -> None:
    before = await post_and_parse(http, document_1(WIDEVINE, PLAYREADY, FAIRPLAY))
    assert "LA_URL" not in before.system(PLAYREADY, "speke:ProtectionHeader").decode("utf-16-le")
    settings = {
        "playreadyLaUrl": "https://drm.example.com/rights?a=1&b=2",
        "widevineProvider": "acme",
        "contentIdInPssh": True,
        "fairplayUriTemplate": "skd://fps.example.com/;{kid}:{iv}",
        "fairplayKeyFormatVersions": "1/2",
        "fairplayDirectPlainValue": False,
        "fairplayHexForm": False,
    }
    assert (await http.put("/api/client/admin/drm/", json=settings)).json() == settings
    after = await post_and_parse(http, document_1(WIDEVINE, PLAYREADY, FAIRPLAY))
    assert (after.kids, after.keys) == (before.kids, before.keys)
    header = after.system(PLAYREADY, "speke:ProtectionHeader").decode("utf-16-le")
    assert "<LA_URL>https://drm.example.com/rights?a=1&amp;b=2</LA_URL>" in header
    widevine = after.system(WIDEVINE, "cpix:PSSH")
    assert b"acme" in widevine
    assert b"match-17" in widevine
    iv = b64decode(after.single(".//cpix:ContentKey").get("explicitIV") or "").hex()
    assert after.system(FAIRPLAY, "cpix:URIExtXKey") == f"skd://fps.example.com/;{after.kids[0]}:{iv}".encode()
    assert after.system(FAIRPLAY, "speke:KeyFormatVersions") == b"1/2"
    assert (await http.put("/api/client/admin/drm/", json=dict.fromkeys(settings))).status_code == 200
    assert (await post_and_parse(http, document_1(WIDEVINE, PLAYREADY, FAIRPLAY))).text == before.text


async def test_a_fairplay_key_can_stand_in_two_places_and_in_hexadecimal_form(http: httpx.AsyncClient) -> None:
    body = document_1(FAIRPLAY)
    before = await post_and_parse(http, body)
    [key], iv = before.keys, b64decode(before.single(".//cpix:ContentKey").get("explicitIV") or "")
    nested, direct = ".//cpix:ContentKey/cpix:Data/pskc:Secret/pskc:PlainValue", ".//cpix:ContentKey/pskc:PlainValue"
    for settings, forms in (
        ({"fairplayDirectPlainValue": True}, (key, key, iv)),
        ({"fairplayHexForm": True}, (key.hex().encode(), key.hex().encode(), iv.hex().encode())),
        ({"fairplayDirectPlainValue": False}, (key.hex().encode(), None, iv.hex().encode())),
    ):
        assert (await http.put("/api/client/admin/drm/", json=settings)).status_code == 200
        for _ in range(2):  # the second is answered from what is kept of the first
            after = await post_and_parse(http, body)
            assert after.value(nested) == forms[0]
            assert [b64decode(entry.text or "") for entry in after.all(direct)] == ([] if forms[1] is None else [forms[1]])
            assert b64decode(after.single(".//cpix:ContentKey").get("explicitIV") or "") == forms[2]
    assert (await http.put("/api/client/admin/drm/", json=dict.fromkeys(("fairplayHexForm",)))).status_code == 200
    assert (await post_and_parse(http, body)).text == before.text


def encrypted(body: bytes) -> bytes:
    """Return the same request with a recipient for whom the keys are encrypted."""
    wanted = delivery(certificate(rsa.generate_private_key(65537, 2048)))
    wanted = wanted.replace("<cpix:DeliveryDataList>", DELIVERY_DECLARED)
    return body.replace(b"<cpix:ContentKeyList>", wanted.encode() + b"<cpix:ContentKeyList>")


async def test_keys_of_other_systems_and_encrypted_keys_stay_as_they_are(http: httpx.AsyncClient) -> None:
    bodies = (document_1(WIDEVINE, PLAYREADY), encrypted(document_1(FAIRPLAY, content_id="sealed")))
    before = [await post_and_parse(http, body) for body in bodies]
    settings = {"fairplayDirectPlainValue": True, "fairplayHexForm": True}
    assert (await http.put("/api/client/admin/drm/", json=settings)).status_code == 200
    after = [await post_and_parse(http, body) for body in bodies]
    assert after[0].text == before[0].text
    assert after[1].all(".//pskc:PlainValue") == []
    assert after[1].single(".//cpix:ContentKey").get("explicitIV") == before[1].single(".//cpix:ContentKey").get("explicitIV")
    asked_together = await post_and_parse(http, document_1(WIDEVINE, FAIRPLAY, content_id="both"))
    assert len(asked_together.value(".//cpix:ContentKey/pskc:PlainValue")) == 32


async def test_the_master_key_is_replaced_and_the_answer_stays(
    http: httpx.AsyncClient, inner: Core, services_by_type: dict[Any, Any], database_url: str, request_log: RequestLog
) -> None:
    bodies = (BOTH, document_1(FAIRPLAY, content_id="b"))
    before = [(await post_and_parse(http, body)).text for body in bodies]
    old, new = bytes(32), bytes(range(32))
    async with Database(database_url, size=1) as owner:
        assert await master_key_fits(owner, KeyRing(old))
        rotation = Rotation(owner, ring=KeyRing(new, previous=old), old=fingerprint(old))
        await rotation.begin()
        await rotation.switch(lambda _: None)
        await rotation.run(lambda _: None)
    for cipher in (SecretCipher(new), SecretCipher(new, previous=old)):
        vault = Vault(inner.database, cipher)
        handlers = ContentKeyHandlers(inner.executor, ContentKeyQueries(inner.database), vault=vault, random=os.urandom)
        app = assembled(
            inner, {**services_by_type, ContentKeyHandlers: handlers}, request_log=request_log, registry=CollectorRegistry()
        )
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://media.test", headers=http.headers) as again:
            assert [(await post_and_parse(again, body)).text for body in bodies] == before


async def test_what_was_answered_is_recorded_and_can_be_read(
    http: httpx.AsyncClient, inner: Core, services_by_type: dict[Any, Any]
) -> None:
    answer = await post_and_parse(http, BOTH, **{"X-Transaction-ID": "order 66"})
    await post_and_parse(http, document_1(FAIRPLAY))
    await services_by_type[UsageRecorder].stop()
    [issued, *_] = [event for event in await logged(inner) if event.topic == "content_key.issued"]
    assert (issued.cause["actor"], issued.cause["correlation_id"]) == ("admin", "order 66")
    given_out = ["content_key.delivered"] * 2  # with the issue, and after the second response
    assert await topics(inner, issued.stream) == ["content_key.issued", *given_out]
    shown = (await http.get("/api/contentkey/", params={"contentId": "match-17"})).json()
    assert (shown["pageSize"], shown["totalCount"]) == (20, 1)
    [row] = shown["results"]
    assert row["kid"] == answer.kids[0]
    assert (row["client"], row["contentId"], row["answers"]) == ("admin", "match-17", 2)
    assert (row["systems"], row["spekeVersions"]) == (["fairplay", "playready", "widevine"], ["1"])
    assert answer.keys[0].hex() not in str(shown)
    past = (await http.get(f"/api/audit/content_key/{row['id']}/state")).json()["state"]
    assert past == row
    for query in ({"contentId": "other"}, {"contentId": "match-17", "client": "other"}):
        assert (await http.get("/api/contentkey/", params=query)).json()["totalCount"] == 0
    for query in ({}, {"contentId": ""}, {"contentId": "x" * 257}, {"contentId": "a", "pageSize": "0"}):
        assert (await http.get("/api/contentkey/", params=query)).status_code == 400
