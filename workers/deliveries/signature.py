"""Signatures of the Standard Webhooks specification, scheme `v1`: docs/reference/api/webhooks.md#request-headers."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable


def signatures(keys: Iterable[bytes], body: bytes, *, message: str, timestamp: int) -> str:
    """Return the value of `webhook-signature`: one signature for each key, so that a receiver may still use the previous secret."""
    signed = f"{message}.{timestamp}.".encode() + body
    return " ".join([f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}" for key in keys])
