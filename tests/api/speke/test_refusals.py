"""Every invalid request is answered with one line of text with a code, and no key is issued."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.http.app import Application
from api.kernel.log import RequestLog
from api.speke.rate import RateLimit, TokenBuckets
from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import Core
from domain.content_key.handlers import ContentKeyHandlers
from domain.kernel.errors import Unavailable
from domain.kernel.ports import Invocation
from domain.record.kinds.setting import Setting
from domain.record.record import RegisterRecord
from tests.api.asking import assert_problem, engine_error, last, logged
from tests.api.speke.documents import (
    FAIRPLAY,
    PLAYREADY,
    WIDEVINE,
    XML,
    document_1,
    post_and_parse,
    post_document,
    refusal,
    version_2,
)
from tests.support.application import assembled, introduce

BOTH = document_1(PLAYREADY, WIDEVINE)
KIB_256 = 256 * 1024
AES_128 = "81376844-f976-481e-a84e-cc25d39b0b33"


def changed(old: str, new: str, body: bytes = BOTH) -> bytes:
    assert old.encode() in body
    return body.replace(old.encode(), new.encode())


@pytest.fixture
async def nobody(http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody without a key."""
    async with httpx.AsyncClient(transport=http._transport, base_url="http://media.test") as client:
        yield client


async def test_missing_wrong_and_for_nobody_are_the_same_401(nobody: httpx.AsyncClient, inner: Core) -> None:
    key = await introduce(inner, "packager", "keys")
    answers = [
        await post_document(nobody, BOTH, path="/packager/speke"),
        await post_document(nobody, BOTH, path="/packager/speke", **{"API-KEY": ""}),
        await post_document(nobody, BOTH, path="/packager/speke", **{"API-KEY": key + "x"}),
        await post_document(nobody, BOTH, path="/nobody/speke", **{"API-KEY": key + "x"}),
        await post_document(nobody, BOTH, path="/nobody/speke", **{"API-KEY": key}),
        await post_document(nobody, BOTH, path="/Packager/speke", **{"API-KEY": key}),
        await post_document(nobody, BOTH, path="/%ff%00/speke", **{"API-KEY": key}),
        await post_document(nobody, BOTH, path="/packager/speke", **{"API-KEY": key, "client": "admin"}),
        await post_document(nobody, BOTH, path="/packager/speke", Authorization=f"Bearer {key}"),
        await nobody.get("/packager/speke/heartbeat"),
    ]
    assert len({answer.content for answer in answers}) == 1
    for answer in answers:
        refusal(answer, 401, "SPEKE-4010")
        assert answer.headers["www-authenticate"] == "ApiKey"
    assert (await post_document(nobody, BOTH, path="/packager/speke", **{"X-Auth-Key": key})).status_code == 200


async def test_the_key_of_another_client_is_as_good_as_a_wrong_one(nobody: httpx.AsyncClient, inner: Core) -> None:
    boss, _ = await introduce(inner, "boss", "admin"), await introduce(inner, "guest", "operator")
    answers = [await post_document(nobody, BOTH, path=f"/{name}/speke", **{"API-KEY": boss}) for name in ("guest", "nobody")]
    assert len({refusal(answer, 401, "SPEKE-4010") for answer in answers}) == 1
    refusal(await nobody.get("/guest/speke/heartbeat", headers={"API-KEY": boss}), 401, "SPEKE-4010")


async def test_a_right_key_without_the_role_is_403(nobody: httpx.AsyncClient, inner: Core) -> None:
    guest = await introduce(inner, "guest", "viewer", "auditor")
    refusal(await post_document(nobody, BOTH, path="/guest/speke", **{"API-KEY": guest}), 403, "SPEKE-4030")
    refusal(await nobody.get("/guest/speke/heartbeat", headers={"API-KEY": guest}), 403, "SPEKE-4030")


class NeverRead:
    """A body that nobody may ask for."""

    def __aiter__(self) -> NeverRead:
        return self

    async def __anext__(self) -> bytes:
        raise AssertionError("the body was read")


async def test_who_asks_is_known_before_the_body_is_read(http: httpx.AsyncClient, nobody: httpx.AsyncClient) -> None:
    refusal(await nobody.post("/admin/speke", content=NeverRead(), headers=XML), 401, "SPEKE-4010")
    for answer in (
        await post_document(nobody, b"x" * (KIB_256 + 1), **{"content-type": "image/png", "X-Transaction-ID": "\x7f"}),
        await post_document(nobody, b"<!DOCTYPE"),
    ):
        refusal(answer, 401, "SPEKE-4010")
    big = {"content-length": str(KIB_256 + 1), **XML}
    refusal(await http.post("/admin/speke", content=NeverRead(), headers=big), 413, "SPEKE-4130")


async def test_each_check_comes_before_the_next(http: httpx.AsyncClient) -> None:
    wrong = {"content-type": "image/png", "X-Transaction-ID": "\x7f"}
    refusal(await post_document(http, b"x" * (KIB_256 + 1), **wrong), 413, "SPEKE-4130")
    refusal(await post_document(http, b"x" * KIB_256, **wrong), 415, "SPEKE-4150")
    refusal(await post_document(http, b"x", **{"X-Transaction-ID": "\x7f"}), 400, "SPEKE-4000")
    refusal(await post_document(http, b"x"), 400, "SPEKE-4002")

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * 64 * 1024

    refusal(await http.post("/admin/speke", content=in_pieces(), headers=XML), 413, "SPEKE-4130")
    padded = BOTH + b" " * (KIB_256 - len(BOTH))
    assert (await post_document(http, padded)).status_code == 200
    refusal(await post_document(http, padded + b" "), 413, "SPEKE-4130")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": "text/plain"},
        {"content-type": "application/xml; charset=utf-16"},
        {"content-type": "nonsense"},
        {"content-encoding": "gzip"},
        {"content-encoding": "br"},
    ],
)
async def test_other_types_and_compressed_bodies_are_415(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    refusal(await post_document(http, BOTH, **headers), 415, "SPEKE-4150")


async def test_other_methods_are_405_with_or_without_a_key(http: httpx.AsyncClient, nobody: httpx.AsyncClient) -> None:
    for client in (http, nobody):
        for method in ("GET", "PUT", "DELETE", "HEAD"):
            answer = await client.request(method, "/admin/speke")
            assert (answer.status_code, answer.headers["allow"], answer.headers["x-error-code"]) == (405, "POST", "SPEKE-4050")
        refusal(await client.post("/admin/speke/heartbeat"), 405, "SPEKE-4050")


@pytest.mark.parametrize("name", ["api", "engine", "livez", "metrics", "docs", "openapi.json", "favicon.ico", "%61pi"])
async def test_the_first_segments_of_others_name_no_client(http: httpx.AsyncClient, name: str) -> None:
    refused = engine_error if name == "engine" else assert_problem
    refused(await post_document(http, BOTH, path=f"/{name}/speke"), 404)
    refused(await http.get(f"/{name}/speke/heartbeat"), 404)


async def test_the_console_names_no_client(http: httpx.AsyncClient) -> None:
    """The addresses below /console are pages."""
    assert_problem(await post_document(http, BOTH, path="/console/speke"), 405)


async def test_what_is_below_nothing_is_nothing(http: httpx.AsyncClient) -> None:
    for path in ("/admin/speke/other", "/admin/other", "/admin", "//speke", "/admin/speke/heartbeat/x"):
        assert_problem(await http.post(f"http://media.test{path}", content=BOTH, headers=XML), 404)


KID = str(uuid4())
DOCUMENTS: list[tuple[str, bytes, int, str]] = [
    ("nothing", b"", 400, "SPEKE-4001"),
    ("blanks", b" \n", 400, "SPEKE-4001"),
    ("no XML", b"{}", 400, "SPEKE-4002"),
    ("cut off", BOTH[:-5], 400, "SPEKE-4002"),
    ("not UTF-8", b"\xff\xfe\x00", 400, "SPEKE-4002"),
    ("a DTD", b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>' + BOTH.split(b"?>", 1)[1], 400, "SPEKE-4003"),
    ("a DTD in UTF-16", ("<!DOCTYPE a>" + BOTH.split(b"?>", 1)[1].decode()).encode("utf-16"), 400, "SPEKE-4003"),
    ("AES-128", document_1(AES_128), 400, "SPEKE-4004"),
    ("another root", b"<CPIX/>", 400, "SPEKE-4005"),
    ("no keys", changed("<cpix:ContentKey kid", "<cpix:Other kid"), 400, "SPEKE-4006"),
    ("no id", changed(' id="match-17"', ""), 400, "SPEKE-4008"),
    ("no systemId", changed("systemId", "system"), 400, "SPEKE-4008"),
    ("kid no UUID", document_1(WIDEVINE, kid="7"), 400, "SPEKE-4009"),
    ("IV too short", document_1(WIDEVINE, iv="AAAA"), 400, "SPEKE-4011"),
    ("no scheme", changed(' commonEncryptionScheme="cbcs"', "", version_2(uuid4(), uuid4())), 422, "SPEKE-4204"),
    ("FairPlay in cenc", version_2(uuid4(), uuid4(), scheme="cenc"), 422, "SPEKE-4206"),
    ("no version", changed(' version="2.3"', "", version_2(uuid4(), uuid4())), 422, "SPEKE-4202"),
    ("version 4.0", version_2(uuid4(), uuid4(), version="4.0"), 422, "SPEKE-4203"),
]


@pytest.mark.parametrize(("body", "status", "code"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS])
async def test_a_document_that_cannot_be_answered(
    http: httpx.AsyncClient, inner: Core, body: bytes, status: int, code: str
) -> None:
    before = await last(inner)
    text = refusal(await post_document(http, body), status, code)
    assert "match-17" not in text
    assert await last(inner) == before


async def test_the_unsupported_system_is_named(http: httpx.AsyncClient) -> None:
    assert refusal(await post_document(http, document_1(AES_128)), 400, "SPEKE-4004") == f"unsupported systemId {AES_128}"


async def test_another_version_of_speke_is_422(http: httpx.AsyncClient) -> None:
    refusal(await post_document(http, version_2(uuid4(), uuid4()), **{"X-Speke-Version": "4.0"}), 422, "SPEKE-4207")


async def test_a_kid_of_another_content_is_422(http: httpx.AsyncClient, inner: Core) -> None:
    first = await post_and_parse(http, document_1(WIDEVINE, kid=KID))
    before = await last(inner)
    text = refusal(await post_document(http, document_1(WIDEVINE, content_id="other", kid=KID)), 422, "SPEKE-4221")
    assert text == f"the kid {KID} belongs to another content id"
    assert (await last(inner), (await post_and_parse(http, document_1(WIDEVINE, kid=KID))).keys) == (before, first.keys)


@pytest.mark.parametrize("content_id", ["x" * 257, " ", "x" * 100_000])
async def test_a_content_id_that_cannot_be_is_400(http: httpx.AsyncClient, inner: Core, content_id: str) -> None:
    before = await last(inner)
    assert (await post_document(http, document_1(WIDEVINE, content_id=content_id))).status_code == 400
    assert await last(inner) == before


Replaced = Callable[[dict[Any, Any]], httpx.AsyncClient]


@pytest.fixture
async def with_services(http: httpx.AsyncClient, inner: Core, services_by_type: dict[Any, Any]) -> Replaced:
    """The product with some services replaced."""

    def make(replaced: dict[Any, Any]) -> httpx.AsyncClient:
        quiet = RequestLog(io.StringIO(), clock=inner.clock)
        app = assembled(inner, {**services_by_type, **replaced}, request_log=quiet, registry=CollectorRegistry())
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=http.headers)

    return make


async def test_too_many_are_429_and_told_when_to_come_again(with_services: Replaced, inner: Core) -> None:
    other = {"API-KEY": await introduce(inner, "packager", "keys")}
    limit = RateLimit(TokenBuckets(1, monotonic=lambda: 7.0))
    async with with_services({RateLimit: limit}) as http:
        statuses = [(await post_document(http, BOTH)).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 200, 429]
        answer = await post_document(http, b"not even XML")
        refusal(answer, 429, "SPEKE-4290")
        assert answer.headers["retry-after"] == "1"
        assert (await http.get("/admin/speke/heartbeat")).status_code == 200
        assert (await post_document(http, BOTH, path="/packager/speke", **other)).status_code == 200


class Away:
    """Handlers whose database does not answer."""

    async def issue(self, requests: object, *, invocation: object) -> None:
        raise Unavailable("the database does not answer", retry_after=3)


class Broken:
    """Handlers with an error of our own."""

    async def issue(self, requests: object, *, invocation: object) -> None:
        raise RuntimeError("secret details")


async def test_a_store_that_is_away_is_503_and_a_fault_of_ours_500(with_services: Replaced) -> None:
    async with with_services({ContentKeyHandlers: Away()}) as http:
        answer = await post_document(http, BOTH)
        assert refusal(answer, 503, "SPEKE-5030") == "the database does not answer"
        assert answer.headers["retry-after"] == "3"
    async with with_services({ContentKeyHandlers: Broken()}) as http:
        assert "secret details" not in refusal(await post_document(http, BOTH), 500, "SPEKE-5000")


async def test_no_key_is_in_any_log_event_or_table(
    http: httpx.AsyncClient,
    inner: Core,
    application: Application,
    services_by_type: dict[Any, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Keys appear neither raw nor in hex nor in base64; requests and responses do not appear either."""
    stream = io.StringIO()
    application.log = RequestLog(stream, clock=inner.clock, reads=True)
    caplog.set_level("DEBUG")
    documents = (BOTH, document_1(FAIRPLAY, kid=KID), version_2(uuid4(), uuid4()))
    answers = [await post_and_parse(http, body, **{"Idempotency-Key": f"k{n}"}) for n, body in enumerate(documents)]
    for body in (*(row[1] for row in DOCUMENTS), document_1(WIDEVINE, content_id="other", kid=KID)):
        await post_document(http, body)
    await services_by_type[UsageRecorder].stop()
    application.log.flush()
    paths = ("/metrics", "/api/audit/events/", "/api/contentkey/?contentId=match-17", "/api/audit/export")
    seen = [stream.getvalue(), caplog.text, *(str(event) for event in await logged(inner))]
    seen += [(await http.get(path)).text for path in paths]
    tables = await inner.database.rows(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace"
    )
    for (table,) in tables:
        rows = await inner.database.rows(f"SELECT {table}::text FROM {table}")
        seen.append("\n".join(row[0] for row in rows))
    for answer in answers:
        for plain, key in zip(answer.all(".//pskc:PlainValue"), answer.keys, strict=True):
            for spelled in (plain.text or "?", key.hex(), key.hex().upper(), str(key)):
                assert [text[:80] for text in seen if spelled in text] == []
    assert "PlainValue" not in stream.getvalue() + caplog.text
    assert len(tables) > 15
    assert stream.getvalue().count("\n") > len(DOCUMENTS)


async def test_a_client_has_a_limited_number_of_keys_and_gets_those_that_it_has(http: httpx.AsyncClient, inner: Core) -> None:
    limit = {"client": "admin", "name": "max_content_keys", "setting": 2}
    setting = RegisterRecord("admin:max_content_keys", Setting, limit)
    await inner.executor.execute(setting, invocation=Invocation.by("admin"))
    first, second, third = (document_1(WIDEVINE, content_id=name) for name in "abc")
    given = [(await post_and_parse(http, body)).keys for body in (first, second)]
    before = await last(inner)
    assert "has 2 content keys" in refusal(await post_document(http, third), 422, "SPEKE-4222")
    assert await last(inner) == before
    assert [(await post_and_parse(http, body)).keys for body in (first, second)] == given
