"""Addresses that are absolute http and https URLs, and those that are not."""

from __future__ import annotations

import pytest

from domain.kernel.errors import Malformed
from domain.kernel.urls import LONGEST_URL, check_url

GOOD = [
    "http://hooks.test",
    "HTTPS://Hooks.Test:8443/a/b?c=d&e=%20",
    "http://hooks.test.",
    "http://10.0.0.1/",
    "http://my_service:65535/a",
    "http://[::1]:8080/a",
    "http://[2001:db8::1]",
    "https://xn--bcher-kva.test/a;b?c=@",
    "https://hooks.test/" + "a" * (LONGEST_URL - 19),
]
BAD = [
    "", " ", "hooks.test", "/a", "//hooks.test/a", "http:", "http:/a", "http://", "http:///a", "http:hooks.test", "http://:80/", "http://?a",
    "ftp://hooks.test", "file:///etc/passwd", "javascript:alert(1)", "gopher://h", "ws://hooks.test", "data:,x", "unix:///a",
    "http://user@hooks.test", "http://user:word@hooks.test", "http://@hooks.test", "http://a%40b@hooks.test", "http://hooks.test@evil.test/",
    "http://hooks.test:0", "http://hooks.test:65536", "http://hooks.test:-1", "http://hooks.test:x", "http://hooks.test:", "http://a:1:2/",
    "http://hooks.test:8\u0660", "http://hooks.test/#a", "http://hooks.test#", "http://hooks.test/a b",
    " http://hooks.test", "http://hooks.test ",
    "http://hooks.test/\r\nX: y", "http://hooks.test/\t", "http://hooks.test/\x00", "http://hooks.test/\x7f", "http://hooks.test/\u00a0",
    "http://hooks.test\\@evil.test", "http:\\\\hooks.test", "http://b\u00fccher.test", "http://hooks.test/\u00e4", "http://\u2460.test",
    "http://[::1", "http://::1/", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[127.0.0.1]/", "http://[]/",
    "http://[v1.x]/", "http://a[::1]/", "http://..", "http://.a", "http://a..b", "http://-a", "http://a-.b", "http://a%2fb/", "http://%00/",
    "http://" + "a" * 64, "http://" + ".".join(["a" * 60] * 5), "http://a,b", "http://a;b", "http://a'b", "http://{h}",
    "https://hooks.test/" + "a" * (LONGEST_URL - 18),
]  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_an_absolute_address_of_the_web_is_taken(url: str) -> None:
    check_url(url, field="webhookUrl")


@pytest.mark.parametrize("url", BAD)
def test_nothing_else_is_and_the_refusal_does_not_repeat_it(url: str) -> None:
    with pytest.raises(Malformed) as refused:
        check_url(url, field="webhookUrl")
    [error] = refused.value.errors
    assert error.field == "webhookUrl"
    assert len(url) < 8 or url not in error.message
