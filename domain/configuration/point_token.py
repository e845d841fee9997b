"""Tokens of publishing points of the built-in origin: with them encoders write, and the product reads what is not published.

A token says itself what it is for, so that the origin refuses an encoder that was replaced, and a token that has expired, without
asking anybody.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from re import compile as regex
from typing import Final

LARGEST_SESSION: Final = 2**63 - 1
PREFIX: Final = "mlo_"
_TOKEN: Final = regex(PREFIX + r"([ehr])\.(0|[1-9][0-9]{0,18})\.([1-9][0-9]{0,10})\.([1-9][0-9]{0,10})\.([A-Za-z0-9_-]{43})")


class Use(StrEnum):
    """What a token is for."""

    ENCODER = "e"
    """An encoder that the product has started writes in this session, and while the session runs."""
    HAND = "h"
    """Whoever got it on the command line writes in this session."""
    READ = "r"
    """The product reads. It is of no session."""


@dataclass(frozen=True, slots=True)
class PointToken:
    """`issued` and `expires` are Unix times in whole seconds."""

    use: Use
    issued: int
    expires: int
    session: int = 0

    @property
    def writes(self) -> bool:
        return self.use is not Use.READ

    def text(self, key: bytes, *, point: str) -> str:
        """`key` is `ingest_key` of the master key; `point` the name of the publishing point, as its URL has it."""
        if not 0 <= self.session <= LARGEST_SESSION:
            raise ValueError("the number of a session has 63 bits")
        claims = f"{self.use}.{self.session}.{self.issued}.{self.expires}"
        return f"{PREFIX}{claims}.{_mac(key, point, claims)}"


def read_point_token(key: bytes, text: str, *, point: str, now: float) -> PointToken | None:
    """The token for this point that has not expired; None for any other text. A wrong one takes as long as the right one."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    token = PointToken(Use(found[1]), int(found[3]), int(found[4]), int(found[2]))
    genuine = hmac.compare_digest(_mac(key, point, text[len(PREFIX) :].rpartition(".")[0]), found[5])
    return token if genuine and token.session <= LARGEST_SESSION and now < token.expires else None


def _mac(key: bytes, point: str, claims: str) -> str:
    return urlsafe_b64encode(hmac.digest(key, f"{claims}\0{point}".encode(), "sha256")).rstrip(b"=").decode()
