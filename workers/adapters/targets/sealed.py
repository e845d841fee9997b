"""Addresses that open something without a login, kept in the state of an upload: encrypted with a secret of the destination.

The state is stored beside the job, and holds no secret; whoever has the destination opened can read it, and nobody else."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE: Final = 12
_PURPOSE: Final = b"state of an upload\0"


def sealed(text: str, *, secret: str) -> str:
    nonce = os.urandom(_NONCE)
    return urlsafe_b64encode(nonce + _cipher(secret).encrypt(nonce, text.encode(), _PURPOSE)).decode()


def unsealed(text: str, *, secret: str) -> str | None:
    """None: it was sealed with another secret, or is not what was sealed."""
    try:
        raw = urlsafe_b64decode(text)
        return _cipher(secret).decrypt(raw[:_NONCE], raw[_NONCE:], _PURPOSE).decode()
    except (ValueError, InvalidTag):
        return None


def _cipher(secret: str) -> AESGCM:
    return AESGCM(sha256(_PURPOSE + secret.encode()).digest())
