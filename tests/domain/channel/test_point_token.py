"""Tokens of the built-in origin: what a token opens, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.channel.point_token import LARGEST_SESSION, PointToken, Use, read_point_token
from domain.kernel.encryption import ingest_key

KEY = ingest_key(bytes(range(32)))
NOW = 1_700_000_000
GIVEN = PointToken(Use.ENCODER, NOW, NOW + 600, 17)
TOKEN = GIVEN.text(KEY, point="news")


@given(
    st.binary(min_size=32, max_size=32),
    st.text(max_size=64),
    st.builds(PointToken, st.sampled_from(Use), st.integers(1, 10**10), st.just(NOW + 1), st.integers(0, LARGEST_SESSION)),
)
def test_a_token_tells_what_it_is_for_at_its_point(key: bytes, point: str, given: PointToken) -> None:
    assert read_point_token(key, given.text(key, point=point), point=point, now=NOW) == given


def test_the_key_is_derived_and_not_the_master_key() -> None:
    assert KEY.hex() == "57cb6d6365fd9fed02133bbca23311868ed026e51b1aabb42c20b79919be221d"
    assert bytes(range(32)).hex() not in TOKEN


@pytest.mark.parametrize(
    "text",
    [
        "",
        TOKEN[:-1],
        TOKEN + "A",
        TOKEN + "\n",
        " " + TOKEN,
        TOKEN.replace("_e.", "_h."),
        TOKEN.replace("_e.", "_r."),
        TOKEN.replace(".17.", ".18."),
        TOKEN.replace(".17.", ".017."),
        TOKEN.replace(".17.", ".+17."),
        TOKEN.replace(".17.", ".\u0661\u0667."),
        TOKEN.replace(".17.", f".{'9' * 19}."),
        TOKEN.replace(str(NOW + 600), str(NOW + 601)),
        TOKEN.replace(str(NOW), str(NOW + 1), 1),
        TOKEN.swapcase(),
        TOKEN.removeprefix("mlo_"),
        TOKEN.rpartition(".")[0] + "." + "A" * 43,
        TOKEN.rpartition(".")[0] + "." + "\xe4" * 43,
        "1.17." + "A" * 43,
    ],
)
def test_another_text_is_no_token(text: str) -> None:
    assert read_point_token(KEY, text, point="news", now=NOW) is None


@pytest.mark.parametrize("point", ["", "new", "news-b", "NEWS", "17\0news"])
def test_a_token_is_for_one_point(point: str) -> None:
    assert read_point_token(KEY, TOKEN, point=point, now=NOW) is None


def test_a_token_ends() -> None:
    """Tokens once were valid for ever, even after the key of the client that had ordered them was revoked."""
    assert read_point_token(KEY, TOKEN, point="news", now=NOW + 599.9) == GIVEN
    assert read_point_token(KEY, TOKEN, point="news", now=NOW + 600) is None


def test_a_token_of_another_installation_is_not_accepted() -> None:
    assert read_point_token(ingest_key(bytes(32)), TOKEN, point="news", now=NOW) is None


@pytest.mark.parametrize("session", [-1, LARGEST_SESSION + 1])
def test_a_session_has_63_bits(session: int) -> None:
    with pytest.raises(ValueError, match="63 bits"):
        PointToken(Use.HAND, NOW, NOW + 1, session).text(KEY, point="news")
