"""Tokens of publishing points of the built-in origin. Encoders write with them, and the product reads unpublished media with them.

A token contains its own purpose, so the origin can refuse a replaced encoder and an expired token without a look-up.
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
    """The purpose of a token."""

    ENCODER = "e"
    """An encoder that the product started writes in this session, while the session runs."""
    HAND = "h"
    """A person who got the token on the command line writes in this session."""
    READ = "r"
    """The product reads. The token belongs to no session."""


@dataclass(frozen=True, slots=True)
class PointToken:
    """A token of a publishing point. `issued` and `expires` are Unix times in whole seconds."""

    use: Use
    issued: int
    expires: int
    session: int = 0

    @property
    def writes(self) -> bool:
        return self.use is not Use.READ

    def text(self, key: bytes, *, point: str) -> str:
        """Return the token as text. `key` is `ingest_key` of the master key; `point` is the name of the publishing point in its
        URL."""
        if not 0 <= self.session <= LARGEST_SESSION:
            raise ValueError("the number of a session has 63 bits")
        claims = f"{self.use}.{self.session}.{self.issued}.{self.expires}"
        return f"{PREFIX}{claims}.{_mac(key, point, claims)}"


def read_point_token(key: bytes, text: str, *, point: str, now: float) -> PointToken | None:
    """Return the token if it is valid for this point and has not expired; None for any other text. A wrong token takes as long
    as the right one."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    token = PointToken(Use(match[1]), int(match[3]), int(match[4]), int(match[2]))
    genuine = hmac.compare_digest(_mac(key, point, text[len(PREFIX) :].rpartition(".")[0]), match[5])
    return token if genuine and token.session <= LARGEST_SESSION and now < token.expires else None


def _mac(key: bytes, point: str, claims: str) -> str:
    return urlsafe_b64encode(hmac.digest(key, f"{claims}\0{point}".encode(), "sha256")).rstrip(b"=").decode()
