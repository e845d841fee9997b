"""Signing secrets of webhooks, in the form of the Standard Webhooks specification: docs/reference/api/webhooks.md#secret."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import timedelta
from typing import Final

BYTES: Final = 32
OVERLAP: Final = timedelta(hours=24)
"""The time during which requests also carry a signature of the replaced secret."""

_PREFIX: Final = "whsec_"


def encode_secret(key: bytes) -> str:
    """Return the text of a secret, which the subscriber gets once."""
    return _PREFIX + b64encode(key).decode()


def decode_secret(secret: str) -> bytes:
    """Return the bytes to sign with."""
    return b64decode(secret.removeprefix(_PREFIX), validate=True)
