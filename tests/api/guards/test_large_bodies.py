"""The limits on large bodies."""

from __future__ import annotations

import pytest

from api.guards.large_bodies import is_large


@pytest.mark.parametrize(
    ("headers", "large"),
    [
        ({}, False),
        ({b"content-length": b"32768"}, False),
        ({b"content-length": b"32769"}, True),
        ({b"content-length": b"9" * 30}, True),
        ({b"transfer-encoding": b"chunked"}, True),
    ],
)
def test_a_body_without_a_length_may_be_large(headers: dict[bytes, bytes], large: bool) -> None:
    assert is_large(headers) is large
