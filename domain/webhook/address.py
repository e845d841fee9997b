"""Where a webhook leads, and as whom it calls there: document 2, "Webhook objects".

A `webhookUrl` is looked at here as text alone. Whether its host may be called is asked when it is called, of the address that
its name then has.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from domain.kernel.errors import Malformed

LONGEST_URL: Final = 2048
LONGEST_PASSWORD: Final = 1024

_FIELD: Final = "webhookUrl"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(?=.{{1,254}}\Z){_LABEL}(?:\.{_LABEL})*\.?")


def check_url(url: str, *, field: str = _FIELD) -> None:
    """RFC 3986, without what only serves to mislead a reader or another parser. Messages never repeat the address: its query may
    hold a key."""
    fault = _fault(url)
    if fault is not None:
        raise Malformed.at(field, fault)


def _fault(url: str) -> str | None:
    if len(url) > LONGEST_URL:
        return f"must have at most {LONGEST_URL} characters"
    if not _VISIBLE.fullmatch(url) or "\\" in url:
        return "must be visible ASCII without backslashes; anything else is percent-encoded, a host in its ASCII form"
    if "#" in url:
        return "may not have a fragment"
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return "has an invalid host or port"
    if split.scheme not in ("http", "https") or not url[len(split.scheme) :].startswith("://"):
        return "must be an absolute http or https URL"
    if "@" in split.netloc:
        return "may not hold a user name; there are username and password for that"
    if port == 0 or not _names_host(split):
        return "has an invalid host or port"
    return None


def check_username(username: str) -> None:
    """RFC 7617: a colon would end it."""
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


def _names_host(split: SplitResult) -> bool:
    host = split.hostname or ""
    if split.netloc.startswith("["):
        try:
            IPv6Address(host)
        except ValueError:
            return False
        return "%" not in host and bool(re.fullmatch(r"\[[^\[\]]*\](?::\d+)?", split.netloc))
    return bool(_HOST.fullmatch(host)) and bool(re.fullmatch(r"[^:]+(?::\d+)?", split.netloc))
