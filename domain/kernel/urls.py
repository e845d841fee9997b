"""Web addresses: absolute http and https URLs, checked as text only.

The connection decides whether a host may be called, by the IP address that its name resolves to at that time.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from domain.kernel.errors import Malformed

LONGEST_URL: Final = 2048
_PORTS: Final = {"http": 80, "https": 443, "rtmp": 1935, "rtmps": 443}

_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(?=.{{1,254}}\Z){_LABEL}(?:\.{_LABEL})*\.?")


def check_url(url: str, *, field: str) -> None:
    """Raise `Malformed` for an address that is not valid by RFC 3986 or that could mislead a reader or another parser. Messages
    never repeat the address, because its query may hold a key."""
    fault = url_fault(url)
    if fault is not None:
        raise Malformed.at(field, fault)


def url_fault(url: str) -> str | None:
    """Return the error in an address, or None if it may be used."""
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
        return "may not contain a user name; use username and password for that"
    if port == 0 or not _names_host(split):
        return "has an invalid host or port"
    return None


def origin(url: str) -> str:
    """Return scheme, host and port (RFC 6454, section 4), which determine the server that gets the credentials of the address. For
    a text that is not a whole URL, return its part before the path."""
    if "://" not in url:
        return url.split("/")[0].strip().casefold()
    try:
        split = urlsplit(url.strip())
        port = split.port or _PORTS.get(split.scheme, 0)
    except ValueError:
        return url
    return f"{split.scheme}://{(split.hostname or '').removesuffix('.')}:{port}"


def _names_host(split: SplitResult) -> bool:
    host = split.hostname or ""
    if split.netloc.startswith("["):
        try:
            IPv6Address(host)
        except ValueError:
            return False
        return "%" not in host and bool(re.fullmatch(r"\[[^\[\]]*\](?::\d+)?", split.netloc))
    return bool(_HOST.fullmatch(host)) and bool(re.fullmatch(r"[^:]+(?::\d+)?", split.netloc))
