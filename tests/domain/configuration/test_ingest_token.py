"""Tokens of the built-in origin: what a token opens, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.ingest_token import LARGEST_SESSION, ingest_token, read_ingest_token
from domain.kernel.encryption import ingest_key

KEY = ingest_key(bytes(range(32)))
TOKEN = ingest_token(KEY, point="news", session=17)


@given(st.binary(min_size=32, max_size=32), st.text(max_size=64), st.integers(0, LARGEST_SESSION))
def test_a_token_tells_its_session_at_its_point(key: bytes, point: str, session: int) -> None:
    assert read_ingest_token(key, ingest_token(key, point=point, session=session), point=point) == session


def test_the_key_is_derived_and_not_the_master_key() -> None:
    assert KEY.hex() == "57cb6d6365fd9fed02133bbca23311868ed026e51b1aabb42c20b79919be221d"
    assert bytes(range(32)).hex() not in TOKEN


@pytest.mark.parametrize(
    "token",
    [
        "",
        TOKEN[:-1],
        TOKEN + "A",
        TOKEN + "\n",
        " " + TOKEN,
        TOKEN.replace("17", "18"),
        TOKEN.replace("17", "017"),
        TOKEN.replace("17", "+17"),
        TOKEN.replace("17", "\u0661\u0667"),
        TOKEN.replace("17", "9" * 19),
        TOKEN.replace("1.", "2.", 1),
        TOKEN.swapcase(),
        "1.17." + "A" * 43,
        "1.17." + "\xe4" * 43,
    ],
)
def test_another_text_is_no_token(token: str) -> None:
    assert read_ingest_token(KEY, token, point="news") is None


@pytest.mark.parametrize("point", ["", "new", "news-b", "NEWS", "17\0news"])
def test_a_token_is_for_one_point(point: str) -> None:
    assert read_ingest_token(KEY, TOKEN, point=point) is None


def test_a_token_of_another_installation_is_not_accepted() -> None:
    assert read_ingest_token(ingest_key(bytes(32)), TOKEN, point="news") is None


@pytest.mark.parametrize("session", [-1, LARGEST_SESSION + 1])
def test_a_session_has_63_bits(session: int) -> None:
    with pytest.raises(ValueError, match="63 bits"):
        ingest_token(KEY, point="news", session=session)
