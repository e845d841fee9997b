"""Sealing of addresses in the state of an upload that give access without a login. They are encrypted with a secret of the
destination.

The state is stored next to the job and contains no secret in plain text; it can be read only with the decrypted destination.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE: Final = 12
_PURPOSE: Final = b"state of an upload\0"


def seal(text: str, *, secret: str) -> str:
    nonce = os.urandom(_NONCE)
    return urlsafe_b64encode(nonce + _cipher(secret).encrypt(nonce, text.encode(), _PURPOSE)).decode()


def unseal(text: str, *, secret: str) -> str | None:
    """Return the text; None if it was sealed with another secret or is damaged."""
    try:
        raw = urlsafe_b64decode(text)
        return _cipher(secret).decrypt(raw[:_NONCE], raw[_NONCE:], _PURPOSE).decode()
    except (ValueError, InvalidTag):
        return None


def _cipher(secret: str) -> AESGCM:
    return AESGCM(sha256(_PURPOSE + secret.encode()).digest())
