"""Tokens with which an encoder may write to a publishing point of the built-in origin.

A token holds the number of the session that it is for, so the origin refuses an encoder that was replaced without asking anybody.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from re import compile as regex
from typing import Final

LARGEST_SESSION: Final = 2**63 - 1
_TOKEN: Final = regex(r"1\.(0|[1-9][0-9]{0,18})\.([A-Za-z0-9_-]{43})")


def ingest_token(key: bytes, *, point: str, session: int) -> str:
    """`key` is `ingest_key` of the master key; `point` the name of the publishing point, as its URL has it."""
    if not 0 <= session <= LARGEST_SESSION:
        raise ValueError("the number of a session has 63 bits")
    return f"1.{session}.{_mac(key, point, session)}"


def read_ingest_token(key: bytes, token: str, *, point: str) -> int | None:
    """The session of a token for this point; None for any other text. Takes as long for a wrong one as for the right one."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        return None
    session = int(found[1])
    if session > LARGEST_SESSION or not hmac.compare_digest(_mac(key, point, session), found[2]):
        return None
    return session


def _mac(key: bytes, point: str, session: int) -> str:
    return urlsafe_b64encode(hmac.digest(key, f"{session}\0{point}".encode(), "sha256")).rstrip(b"=").decode()
