"""`additionalPropertiesJson`: accepted texts, the stored text, and the credentials in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.kernel.credentials import hints_at_credential
from domain.kernel.errors import Malformed
from domain.webhook.headers import LONGEST_VALUE, MOST, split_credentials


def text(*headers: tuple[Any, Any]) -> str:
    return json.dumps({"headers": [{"name": name, "value": value} for name, value in headers]})


def refused(sent: str) -> list[str]:
    with pytest.raises(Malformed) as fault:
        split_credentials(sent)
    return [error.field.removeprefix("additionalPropertiesJson") for error in fault.value.errors]


def test_a_text_without_credentials_is_kept_as_it_was_sent() -> None:
    for sent in (
        text(("X-Site", "main"), ("x-site", "b c d")),
        ' {"headers" :\n[ ]} ',
        '{"headers":[{"value":"\\u0061","name":"X"}]}',
    ):
        taken = split_credentials(sent)
        assert (taken.text, taken.credentials) == (sent, {})


def test_credentials_are_replaced_by_null_and_nothing_else_changes() -> None:
    sent = '{ "headers": [\n {"v\\u0061lue" : "swordfish \\"1\\"" , "name":"X-API-Key"}, '
    sent += '{"name":"value","value":"name: \\": [{\\""},{"name":"Cookie","value":null}]}'
    taken = split_credentials(sent)
    assert taken.text == sent.replace('"swordfish \\"1\\""', "null")
    assert taken.credentials == {"header:x-api-key": 'swordfish "1"'}
    assert split_credentials(taken.text).text == taken.text
    assert "swordfish" not in repr(taken)


@pytest.mark.parametrize(
    "name",
    ["Authorization", "X-Auth", "Cookie", "X-TOKEN", "client-secret", "X-Api-Key", "apikey", "X-Password", "X-Session-Id",
     "X-Goog-Signature", "Ocp-Apim-Subscription-Key"],
)  # fmt: skip
def test_names_of_headers_that_carry_credentials(name: str) -> None:
    assert hints_at_credential(name)
    assert json.loads(split_credentials(text((name, "v"))).text)["headers"] == [{"name": name, "value": None}]


def test_names_of_headers_without_credentials() -> None:
    assert not any(hints_at_credential(name) for name in ("X-Site", "Accept", "User-Agent", "X-Tenant", "Date", "X-Bypass"))


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ("", [""]),
        ("x", [""]),
        ("[]", [""]),
        ("null", [""]),
        ("{}", [".headers"]),
        ('{"headers": null}', [".headers"]),
        ('{"headers": {}}', [".headers"]),
        ('{"headers": [], "more": 1}', [".more"]),
        ('{"Headers": []}', [".headers", ".Headers"]),
        ('{"headers": [7]}', [".headers[0]"]),
        ('{"headers": [{}]}', [".headers[0].name", ".headers[0].value"]),
        ('{"headers": [{"name": "a", "value": "b", "more": 1}]}', [".headers[0].more"]),
        ('{"headers": [{"name": "a", "name": "Cookie", "value": "b"}]}', [""]),
        ('{"headers": [], "headers": []}', [""]),
        ('{"headers": [{"name": "a", "value": "\\u0000"}]}', [".headers[0].value"]),
        ('{"headers": [{"name": "a", "value": "\\ud800"}]}', [""]),
        ('{"headers": [{"name": "a", "value": NaN}]}', [""]),
        (text(("X", "a"), (7, "b")), [".headers[1].name"]),
        (text(("X", 7)), [".headers[0].value"]),
        (text(("X", ["a"])), [".headers[0].value"]),
        (text((None, "a")), [".headers[0].name"]),
        (text(("Token", "a"), ("TOKEN", "b")), [".headers[1].name"]),
        (text(*[("X", "a")] * (MOST + 1)), [".headers"]),
        ('{"headers": ' + "[" * 5000 + "]" * 5000 + "}", [""]),
    ],
)
def test_another_shape_is_refused_at_its_path(sent: str, fields: list[str]) -> None:
    assert sorted(refused(sent)) == sorted(fields)


@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a:", "a\n", "ä", "a\x00b", "(x)", "a,b", "x" * 257, "Host", "CONTENT-LENGTH", "content-type", "Content-",
     "Connection", "Transfer-Encoding", "webhook-id", "Webhook-Signature", "Webhook-Anything", "Keep-Alive", "TE", "trailer",
     "Upgrade", "Proxy-Authorization", "Expect"],
)  # fmt: skip
def test_invalid_and_reserved_names_are_refused(name: str) -> None:
    assert refused(text(("X-Fine", "a"), (name, "a"))) == [".headers[1].name"]


@pytest.mark.parametrize(
    "value", ["", " ", " a", "a ", "\ta", "a\r\nX-Evil: 1", "a\nb", "a\x0bb", "a\x7f", "ä", "日", "x" * (LONGEST_VALUE + 1)]
)
def test_invalid_header_values_are_refused(value: str) -> None:
    for name in ("X-Site", "Authorization"):
        assert refused(text((name, value))) == [".headers[0].value"]
