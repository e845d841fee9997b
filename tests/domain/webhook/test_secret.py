"""The signing secret's two spellings."""

from __future__ import annotations

import pytest

from domain.webhook.secret import key_of, worded


def test_a_secret_is_worded_as_the_standard_says_and_read_back() -> None:
    assert worded(bytes(32)) == "whsec_" + "A" * 43 + "="
    assert key_of(worded(b"\xfb\xff" * 16)) == b"\xfb\xff" * 16


def test_what_is_no_secret_is_no_key() -> None:
    with pytest.raises(ValueError, match="base64"):
        key_of("whsec_*")
