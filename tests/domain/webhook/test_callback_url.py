"""Addresses of callbacks: the shown part and the called part."""

from __future__ import annotations

import pytest

from domain.kernel.errors import Malformed
from domain.kernel.urls import LONGEST_URL
from domain.webhook.callback import parse_callback_url, split_user_info

FIELD = "parameters.callback_urls[0]"


@pytest.mark.parametrize(
    ("url", "shown", "called", "credentials"),
    [
        ("https://hooks.test/a", "https://hooks.test/a", "https://hooks.test/a", None),
        ("https://hooks.test/a?token=s3cret", "https://hooks.test/a", "https://hooks.test/a?token=s3cret", None),
        ("https://u:p@hooks.test:81/a", "https://hooks.test:81/a", "https://hooks.test:81/a", "u:p"),
        ("HTTP://u@hooks.test?a=b@c", "HTTP://hooks.test", "HTTP://hooks.test?a=b@c", "u:"),
        ("http://u%40x:p%3Aq:r@[::1]/a@b", "http://[::1]/a@b", "http://[::1]/a@b", "u@x:p:q:r"),
        ("http://a@b@hooks.test", "http://hooks.test", "http://hooks.test", "a@b:"),
    ],
)
def test_user_info_and_query_are_used_and_not_shown(url: str, shown: str, called: str, credentials: str | None) -> None:
    taken = parse_callback_url(url, field=FIELD)
    assert (taken.shown, taken.whole, taken.has_secret_part) == (shown, url, shown != url)
    assert split_user_info(url) == (called, credentials)
    assert "s3cret" not in repr(taken)


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.test", "ftp://u:very-secret@hooks.test/", "https://u:very-secret@", "https://u:very-secret@/a", "http://a#very-secret",
        "http://u%3Av:very-secret@hooks.test", "http://u:very-secret%0d%0a@hooks.test", "http://u:very-secret\r\n@hooks.test",
        "http://ü:very-secret@hooks.test", "http://\ud800:very-secret@hooks.test", "http://u:\x00very-secret@hooks.test",
        "http://u\\v:very-secret@hooks.test", "http://u:very-secret@hooks.test\\@x", "http://u:very-secret@hooks.test:0",
        "http://u:very-secret@hooks.test/" + "a" * LONGEST_URL,
    ],
)  # fmt: skip
def test_an_invalid_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_callback_url(url, field=FIELD)
    [error] = refused.value.errors
    assert error.field == FIELD
    assert "very-secret" not in error.message
