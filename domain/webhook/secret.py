"""The secret that a webhook signs with, as the Standard Webhooks specification words it. contract.md, "Webhook delivery"."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import timedelta
from typing import Final

BYTES: Final = 32
OVERLAP: Final = timedelta(hours=24)
"""How long a secret that was replaced still signs along."""

_PREFIX: Final = "whsec_"


def worded(random: bytes) -> str:
    """What the subscriber is shown, once."""
    return _PREFIX + b64encode(random).decode()


def key_of(secret: str) -> bytes:
    """The bytes to sign with."""
    return b64decode(secret.removeprefix(_PREFIX), validate=True)
