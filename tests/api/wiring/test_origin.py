"""Tokens of the built-in origin for encoders."""

from __future__ import annotations

import pytest

from domain.channel.point_token import PointToken, Use, read_point_token
from domain.kernel.clock import system_clock
from domain.kernel.encryption import IngestKeys
from workers.kernel.point_tokens import PointTokens

KEYS = IngestKeys(bytes(32))


@pytest.mark.parametrize("below", ["", "/", "/video.m3u8", "/Streams(video.cmfv)", "?a=b"])
def test_a_point_of_the_origin_gets_the_token_of_the_session(below: str) -> None:
    tokens = PointTokens(KEYS, system_clock, origin="http://127.0.0.1:8080")
    [token] = tokens.headers(f"http://127.0.0.1:8080/origin/live/news{below}", 7).values()
    now = system_clock().timestamp()
    result = read_point_token(KEYS.present, token.removeprefix("Bearer "), point="news", now=now)
    assert isinstance(result, PointToken)
    assert (result.use, result.session, result.expires - result.issued) == (Use.ENCODER, 7, 600)
    assert read_point_token(KEYS.present, token.removeprefix("Bearer "), point="news", now=now + 600) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:80801/origin/live/news",
        "http://127.0.0.1:8080.evil.example/origin/live/news",
        "http://127.0.0.1:8080@evil.example/origin/live/news",
        "https://127.0.0.1:8080/origin/live/news",
        "http://evil.example/http://127.0.0.1:8080/origin/live/news",
        "http://127.0.0.1:8080/api/origin/live/news",
        "http://127.0.0.1:8080/origin/live/",
        f"http://127.0.0.1:8080/origin/live/{'n' * 65}",
    ],
)
def test_nobody_else_gets_one(url: str) -> None:
    assert PointTokens(KEYS, system_clock, origin="http://127.0.0.1:8080").headers(url, 7) == {}
    assert PointTokens(KEYS, system_clock, origin=None).headers(url, 7) == {}
