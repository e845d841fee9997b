"""The text form of signing secrets."""

from __future__ import annotations

import pytest

from domain.webhook.endpoint import decode_secret, encode_secret


def test_a_secret_is_encoded_and_decoded() -> None:
    assert encode_secret(bytes(32)) == "whsec_" + "A" * 43 + "="
    assert decode_secret(encode_secret(b"\xfb\xff" * 16)) == b"\xfb\xff" * 16


def test_an_invalid_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="base64"):
        decode_secret("whsec_*")
