"""Callback: an address that is called for the jobs of one client. docs/reference/api/webhooks.md#callbacks.

It is created by the first job that names the address, and removed when no job has named it for a while.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import ClassVar, Final
from urllib.parse import unquote
from uuid import UUID

from domain.kernel.command import decision
from domain.kernel.errors import Malformed
from domain.kernel.ids import hashed
from domain.kernel.urls import LONGEST_URL, check_url
from domain.webhook.aggregate import Webhook
from domain.webhook.details import CallbackDetails, EndpointDetails
from domain.webhook.endpoint import Endpoint

# Addresses of callbacks. User info and query may hold secrets: they are stored encrypted and never shown.

MOST_CALLBACKS: Final = 16
"""The maximum number of callbacks of one job. Each is called for each step of the job."""

_AUTHORITY: Final = re.compile(r"(?P<scheme>[^:/?#]*://)(?P<user>[^/?#]*)@(?P<rest>.*)", re.DOTALL)
_ODD_USER: Final = re.compile(r"[^/]*//(?:[^/?#]*[^\x21-\x7e]|[^/?#]*\\|[^:/?#]*%3[Aa])")
"""User info with characters that no URL has, or with a colon in the user name, which would end it (RFC 7617)."""
_CREDENTIALS: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]*")


@dataclass(frozen=True, slots=True)
class CallbackUrl:
    """A callback's address. `shown` is the address without user info and query; `whole` is the address as it was sent."""

    shown: str
    whole: str = field(repr=False)

    @property
    def has_secret_part(self) -> bool:
        return self.shown != self.whole


def parse_callback_url(url: str, *, field: str) -> CallbackUrl:
    """Parse an address. Raises `Malformed`; messages never repeat the address."""
    if len(url) > LONGEST_URL:
        raise Malformed.at(field, f"must have at most {LONGEST_URL} characters")
    address, credentials = split_user_info(url)
    check_url(address, field=field)
    if credentials is not None and (_ODD_USER.match(url) or not _CREDENTIALS.fullmatch(credentials)):
        raise Malformed.at(field, "has a user name or password that HTTP basic authentication cannot take")
    return CallbackUrl(address.partition("?")[0], url)


def split_user_info(url: str) -> tuple[str, str | None]:
    """Return the URL without user info, and `user:password`, or None if it has no user info."""
    match = _AUTHORITY.fullmatch(url)
    if match is None:
        return url, None
    user, _, password = match["user"].partition(":")
    return match["scheme"] + match["rest"], f"{unquote(user)}:{unquote(password)}"


RETENTION: Final = timedelta(days=30)
"""The time that a callback stays after the last day on which a job named it."""


class Callback(Endpoint[CallbackDetails]):
    """A callback. Its id is derived from the client and the address, so all jobs that name the address find the same callback."""

    KIND: ClassVar[str] = "callback"
    PARENT: ClassVar[str] = "client"

    @decision
    def name(self, at: datetime, /) -> None:
        self.amend(at, {"named_on": max(at.date(), self.details.named_on)})

    @decision
    def remove_unused(self, at: datetime, /, before: date) -> None:
        """Delete the callback if no job has named it on or after that day."""
        if not self.deleted and self.details.named_on < before:
            self.delete(at)


ENDPOINT_KINDS: Final[tuple[type[Endpoint[EndpointDetails]], ...]] = (Webhook, Callback)
"""The kinds of endpoints."""


def callback_key(*, client: str, url: str) -> UUID:
    """Return the id of a callback: a GUID of version 8 (RFC 9562). `url` is the address without its secret parts."""
    return hashed("callback", client, url)
