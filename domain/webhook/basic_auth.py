"""The user name and password of a webhook (RFC 7617)."""

from __future__ import annotations

import re
from typing import Final

from domain.kernel.errors import Malformed

LONGEST_PASSWORD: Final = 1024

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_username(username: str) -> None:
    """Check a user name. It may not have a colon, which ends the user name in RFC 7617."""
    if ":" in username:
        raise Malformed.at("username", "may not have a colon")
    _check_characters(username, "username")


def check_password(password: str) -> None:
    if len(password) > LONGEST_PASSWORD:
        raise Malformed.at("password", f"must have at most {LONGEST_PASSWORD} characters")
    _check_characters(password, "password")


def _check_characters(text: str, field: str) -> None:
    if _CONTROL.search(text):
        raise Malformed.at(field, "may not have control characters")
