"""Callbacks: the addresses that a client's jobs are told to. Document 3, "Job engine", its notes on callbacks; decisions.md, "Job
engine": user info and query of a URL are not shown.

The webhook of an address goes by its client and the address, so that each job that names it again finds the same one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote
from uuid import UUID

from domain.kernel.errors import Malformed
from domain.kernel.ids import hashed
from domain.webhook.address import LONGEST_URL, check_url

MOST: Final = 16
"""So many callbacks may one job have: each of them is told of each step."""

_AUTHORITY: Final = re.compile(r"(?P<scheme>[^:/?#]*://)(?P<user>[^/?#]*)@(?P<rest>.*)", re.DOTALL)
_ODD_USER: Final = re.compile(r"[^/]*//(?:[^/?#]*[^\x21-\x7e]|[^/?#]*\\|[^:/?#]*%3[Aa])")
"""Characters that no URL has, or a colon in the user name: it would end it (RFC 7617)."""
_CREDENTIALS: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]*")


@dataclass(frozen=True, slots=True)
class CallbackUrl:
    """`shown` is the address without user info and query; `whole` as it was written."""

    shown: str
    whole: str = field(repr=False)

    @property
    def hides(self) -> bool:
        return self.shown != self.whole


def taken_apart(url: str, *, field: str) -> CallbackUrl:
    """Messages never repeat the address."""
    if len(url) > LONGEST_URL:
        raise Malformed.at(field, f"must have at most {LONGEST_URL} characters")
    called, credentials = parted(url)
    check_url(called, field=field)
    if credentials is not None and (_ODD_USER.match(url) or not _CREDENTIALS.fullmatch(credentials)):
        raise Malformed.at(field, "has a user name or password that HTTP basic authentication cannot take")
    return CallbackUrl(called.partition("?")[0], url)


def parted(url: str) -> tuple[str, str | None]:
    """The address to call, and `user:password` where it was written with user info."""
    found = _AUTHORITY.fullmatch(url)
    if found is None:
        return url, None
    user, _, password = found["user"].partition(":")
    return found["scheme"] + found["rest"], f"{unquote(user)}:{unquote(password)}"


def callback_key(*, client: str, url: str, mark: str = "") -> UUID:
    """The key of a callback's webhook: a GUID of version 8 (RFC 9562). `url` is the shown one; `mark` stands for what is hidden,
    and is made with a key, since whoever sees the GUID could try passwords on a plain hash."""
    return hashed("callback", client, url, mark)
