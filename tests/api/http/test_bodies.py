"""Valid, invalid and hostile bodies of requests."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.http.toy import ID

JSON_HEADER = {"content-type": "application/json"}


async def post(http: httpx.AsyncClient, body: object) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await http.post("/api/thing/", content=content, headers=JSON_HEADER)


async def test_keys_match_in_any_case_at_every_depth(http: httpx.AsyncClient) -> None:
    answer = await post(http, {"TITLE": "a", "refid": "r", "Auto_Start": "TRUE", "Tags": [{"NAME": "b"}], "odd": 1})
    assert answer.json()["sent"] == {"title": "a", "refId": "r", "autoStart": True, "tags": [{"name": "b"}]}


async def test_free_form_members_stay_as_sent(http: httpx.AsyncClient) -> None:
    answer = await post(http, {"title": "a", "parameters": {"Key": 1, "key": {"TITLE": 2}}})
    assert answer.json()["sent"]["parameters"] == {"Key": 1, "key": {"TITLE": 2}}


async def test_both_names_of_a_field_are_one_field(http: httpx.AsyncClient) -> None:
    assert (await post(http, {"title": "a", "CONFIGJSON": "{}"})).json()["sent"]["destinationJson"] == "{}"
    answer = await post(http, {"title": "a", "configJson": "{}", "destinationJson": "{}"})
    assert answer.json()["errors"][0]["field"] == "destinationJson"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"title": "a", "Title": "b"}, "title"),
        ({"title": "a", "tags": [{"name": "b"}, {"name": "b", "NAME": "c"}]}, "tags[1].name"),
        ({"title": "a", "refId": "b", "ref_id": "c"}, "refId"),
    ],
)
async def test_twin_keys_are_400(http: httpx.AsyncClient, body: object, field: str) -> None:
    answer = await post(http, body)
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"field": field, "message": "is there twice, in two spellings"}]


async def test_absent_and_null_are_told_apart(http: httpx.AsyncClient) -> None:
    assert (await post(http, {"title": "a", "refId": None})).json()["sent"] == {"title": "a", "refId": None}
    assert (await post(http, {"title": "a"})).json()["sent"] == {"title": "a"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b" ", "body"),
        (b"{", "body"),
        (b"null", "body"),
        (b"[]", "body"),
        (b'"text"', "body"),
        (b"{'title': 1}", "body"),
        (b'{"title": "a"} x', "body"),
        (b'{"title": NaN}', "body"),
        (b'{"title": "\xff"}', "body"),
        (b'{"title": "a\nb"}', "body"),
        (b'{"title": "\\ud800"}', "body"),
        (b'{"title": "\\udc00\\ud800"}', "body"),
        (b'{"title": "a\\u0000b"}', "title"),
        (b'{"title": "a", "parameters": {"x": ["\\u0000"]}}', "parameters.x[0]"),
        (b'{"title": "a", "parameters": {"\\u0000": 1}}', "parameters"),
        (b'{"title": "a", "parameters": {"x": 1e400}}', "parameters.x"),
        (b'{"title": "a", "ratio": 1e400}', "ratio"),
        (b'{"title": "a", "priority": 1e300}', "priority"),
        (b'{"title": "a", "priority": 99999999999999999999}', "priority"),
        (b'{"title": "a", "priority": ' + b"9" * 4000 + b"}", "priority"),
        (b'{"title": "a", "priority": ' + b"9" * 9000 + b"}", "body"),
        (b'{"title": "a", "priority": 1.5}', "priority"),
        (b'{"title": "a", "priority": true}', "priority"),
        (b'{"title": "a", "priority": " 5_0 "}', "priority"),
        (b'{"title": "a", "priority": "' + b"9" * 9000 + b'"}', "priority"),
        (b'{"title": 5}', "title"),
        (b'{"Title": null}', "title"),
        (b'{"refId": "a"}', "title"),
        (b'{"title": "a", "TAGS": [{"name": "b"}, {"name": 7}]}', "tags[1].name"),
        (b'{"title": "a", "tags": {"name": "b"}}', "tags"),
        (b'{"title": "a", "owner": "me"}', "owner"),
        (b'{"title": "a", "owner": 7}', "owner"),
        (b'{"title": "a", "autoStart": "yes"}', "autoStart"),
        (b'{"title": "a", "autoStart": 2}', "autoStart"),
        (b'{"title": "a", "colour": "blue"}', "colour"),
        (b'{"title": "a", "colour": 1}', "colour"),
        (b'{"title": "a", "colour": false}', "colour"),
        (b'{"title": "a", "colour": []}', "colour"),
        (b'{"title": "a", "scheduledStart": 1700000000}', "scheduledStart"),
        (b"[" * 10_000 + b"]" * 10_000, "body"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "body"),
    ],
)
async def test_hostile_and_wrong_bodies_are_400_and_name_the_field(http: httpx.AsyncClient, body: bytes, field: str) -> None:
    answer = await post(http, body)
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_an_error_never_repeats_what_was_sent(http: httpx.AsyncClient) -> None:
    answer = await post(http, {"title": ["hunter2"], "owner": "hunter2", "colour": "hunter2", "scheduledStart": "hunter2"})
    assert len(answer.json()["errors"]) == 4
    assert "hunter2" not in answer.text


async def test_the_number_of_errors_is_bounded(http: httpx.AsyncClient) -> None:
    assert len((await post(http, {"title": "a", "tags": [1] * 10_000})).json()["errors"]) == 50


async def test_json_may_begin_with_a_byte_order_mark(http: httpx.AsyncClient) -> None:
    assert (await post(http, b'\xef\xbb\xbf{"title": "a"}')).status_code == 201


async def test_an_escaped_backslash_before_u0000_is_plain_text(http: httpx.AsyncClient) -> None:
    assert (await post(http, b'{"title": "\\\\u0000"}')).json()["sent"]["title"] == "\\u0000"


@pytest.mark.parametrize("value", [4, 4.0, "4", "GREEN", "green", " Green "])
async def test_an_enumeration_is_its_number_or_its_name(http: httpx.AsyncClient, value: object) -> None:
    assert (await post(http, {"title": "a", "colour": value})).json()["sent"]["colour"] == 4


async def test_an_optional_body_may_be_missing_or_null(http: httpx.AsyncClient) -> None:
    for content in (b"", b"null"):
        assert (await http.put(f"/api/thing/{ID}", content=content)).json()["body"] is None
    assert (await http.put(f"/api/thing/{ID}", content=b'{"Name": "x"}')).json()["body"] == "x"


async def form(http: httpx.AsyncClient, **request: Any) -> httpx.Response:
    return await http.post("/api/thing/", **request)


async def test_a_form_is_a_flat_mapping(http: httpx.AsyncClient) -> None:
    text = "Title=a+b%C3%A9&REFID=&autostart=true&Labels=x&Labels=y&colour=GREEN&priority=3"
    answer = await form(http, content=text, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.json()["sent"] == {
        "title": "a bé",
        "refId": None,
        "autoStart": True,
        "labels": ["x", "y"],
        "colour": 4,
        "priority": 3,
    }


async def test_a_multipart_form_is_the_same(http: httpx.AsyncClient) -> None:
    answer = await form(http, files={"TITLE": (None, "é & b"), "refId": (None, "")})
    assert answer.json()["sent"] == {"title": "é & b", "refId": None}


@pytest.mark.parametrize("text", ["title=%zz", "title=%", "title=%ff", "title=%00", "title=a&Title=b", "ref=a"])
async def test_broken_forms_are_400(http: httpx.AsyncClient, text: str) -> None:
    answer = await form(http, content=text, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b"--b\r\n",
        b'--b\r\ncontent-disposition: form-data; name="title"\r\n\r\na',
        b'--b\r\ncontent-disposition: form-data; name="title"; filename="f"\r\n\r\na\r\n--b--\r\n',
        b'--b\r\ncontent-disposition: form-data; name="title"\r\n\r\n\xff\r\n--b--\r\n',
        b"--b\r\n\r\na\r\n--b--\r\n",
    ],
)
async def test_broken_multipart_forms_are_400(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await form(http, content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 400
    unbounded = await form(http, content=body, headers={"content-type": "multipart/form-data"})
    assert unbounded.status_code == 400
