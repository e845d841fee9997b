"""POST /log/exception/: the exception is the body, in any form."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.asking import assert_problem, fields_of

PATH = "/api/log/exception/"


async def post(http: httpx.AsyncClient, body: bytes, content_type: str = "application/json", **query: str) -> httpx.Response:
    return await http.post(PATH, content=body, headers={"content-type": content_type}, params=query)


async def written(http: httpx.AsyncClient, body: bytes, content_type: str = "application/json", **query: str) -> dict[str, Any]:
    answer = await post(http, body, content_type, **query)
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    assert (await http.get(answer.headers["location"])).json() == shown
    return shown


async def test_an_exception_is_an_error_with_its_body_as_it_was_sent(http: httpx.AsyncClient) -> None:
    body = b'{ "ClassName":"System.Exception", "Message": "Boom \\u00e9",\n"StackTraceString":"at X\\r\\nat Y", "Data": null }'
    assert await written(http, body) == {
        "id": 1,
        "callSite": "",
        "date": "2031-01-02T12:00:00.000Z",
        "exception": body.decode(),
        "level": "Error",
        "logger": "",
        "machineName": "",
        "message": "Boom é",
        "stackTrace": "at X\r\nat Y",
        "thread": "",
        "username": "admin",
    }


@pytest.mark.parametrize(
    ("body", "query", "message", "trace"),
    [
        ({"message": "a", "stackTrace": "t"}, {}, "a", "t"),
        ({"MESSAGE": "a", "STACKTRACE": "t"}, {}, "a", "t"),
        ({"message": "a"}, {"message": "while saving"}, "while saving", ""),
        ({"message": "a"}, {"MESSAGE": "while saving"}, "while saving", ""),
        ({"message": "a"}, {"message": ""}, "a", ""),
        ({"message": None, "stackTrace": None, "stackTraceString": "t"}, {}, "", "t"),
        ({"message": "a", "stackTrace": "t", "StackTraceString": "u"}, {}, "a", "t"),
        ({"message": {"deep": "a"}, "stackTrace": ["t"]}, {}, "", ""),
        ({"error": {"message": "a"}}, {}, "", ""),
        ({}, {}, "", ""),
        ([{"message": "a"}], {}, "", ""),
        (7, {"message": "odd"}, "odd", ""),
        (None, {}, "", ""),
    ],
)
async def test_message_and_trace_are_read_from_the_exception(
    http: httpx.AsyncClient, body: Any, query: dict[str, str], message: str, trace: str
) -> None:
    shown = await written(http, json.dumps(body).encode(), **query)
    assert (shown["message"], shown["stackTrace"], shown["exception"]) == (message, trace, json.dumps(body))


async def test_text_is_an_exception_too(http: httpx.AsyncClient) -> None:
    text = 'Traceback (most recent call last):\n  File "é.py"\n{"message": "not JSON"'
    for content_type in ("text/plain", "text/plain; charset=utf-8", 'Text/Plain; charset="UTF-8"'):
        shown = await written(http, text.encode(), content_type, message="context")
        assert (shown["exception"], shown["message"], shown["stackTrace"], shown["level"]) == (text, "context", "", "Error")
    assert (await written(http, json.dumps(text).encode()))["exception"] == text
    assert (await written(http, b'{"message": "a"}', "text/plain"))["message"] == "", "text is not looked into"


async def test_a_byte_order_mark_is_no_part_of_the_text(http: httpx.AsyncClient) -> None:
    assert (await written(http, b"\xef\xbb\xbf{}"))["exception"] == "{}"


async def test_an_exception_that_cannot_be_read_or_stored_is_refused(http: httpx.AsyncClient) -> None:
    for content_type, bodies in {
        "application/json": [
            b"",
            b" ",
            b"{",
            b"boom",
            b"[NaN]",
            b'"\\u0000"',
            b'{"a": "\\ud800"}',
            b'"\xff"',
            b"[" * 500 + b"]" * 500,
        ],
        "text/plain": [b"", b"\x00", b"a\x00b", b"\xff\xfe", b"\xed\xa0\x80"],
    }.items():
        for body in bodies:
            assert_problem(await post(http, body, content_type), 400)
    assert fields_of(await post(http, b'{"message": "a", "Message": "b"}')) == ["message"]
    assert fields_of(await http.post(PATH + "?message=%00", json={})) == ["query"]
    for content_type in ("application/xml", "application/x-www-form-urlencoded", "text/html", "text/plain; charset=utf-16"):
        assert_problem(await post(http, b"{}", content_type), 415)
    assert_problem(await post(http, b"x" * (1024 * 1024 + 1), "text/plain"), 413)
    assert (await http.get("/api/log/")).status_code == 204


async def test_a_mebibyte_of_exception_is_kept(http: httpx.AsyncClient) -> None:
    text = "é" * (512 * 1024)
    assert (await written(http, text.encode(), "text/plain"))["exception"] == text
