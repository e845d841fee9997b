"""Parsers of settings. Each takes the text of a variable and raises ValueError with the end of the sentence "NAME must be …"."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import BeforeValidator

from domain.kernel.media_files import is_published_path
from workers.ports.buckets import BucketAddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MEDIA_ORIGIN: Final = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_LONGEST_QUOTE: Final = 200
_MOST_DIGITS: Final = 20


def _quote(text: str) -> str:
    """Quote a wrong text for an error message, at most one line of it, and without the part before an @, which may be a
    password."""
    if "@" in text:
        text = f"…@{text.rpartition('@')[2]}"
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…")


def path(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"a path, not {_quote(text)}: there is no such user") from None


def paths(text: str) -> tuple[Path, ...]:
    return tuple(path(part.strip()) for part in text.split(",") if part.strip())


_BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")


def media_root(text: str) -> Path | BucketAddress:
    if not text.lower().startswith("s3:"):
        return path(text)
    match = _BUCKET.fullmatch(text)
    prefix = (match[2] or "").strip("/") if match else ""
    if match is None or (prefix and not is_published_path(prefix)):
        raise ValueError(f"a directory, or s3://bucket/prefix, not {_quote(text)}")
    return BucketAddress(match[1], prefix)


def bucket(text: str) -> BucketAddress:
    address = media_root(text) if text.lower().startswith("s3:") else None
    if not isinstance(address, BucketAddress):
        raise ValueError("s3://bucket/prefix")
    return address


def timestamp_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError("an http or https address")
    return text


def switch(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise ValueError(f"on or off, not {_quote(text)}")
    return text.lower() == "on"


def host(text: str) -> str:
    if any(character.isspace() or character in "/@" for character in text):
        raise ValueError(f"a host name or an IP address, not {_quote(text)}")
    return text.removeprefix("[").removesuffix("]")


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not (digits and lowest <= int(text) <= highest):
            raise ValueError(f"a whole number from {lowest} to {highest}, not {_quote(text)}")
        return int(text)

    return parse


def database_url(text: str) -> str | None:
    """Return the address. libpq's own message may quote the password, so it is not passed on."""
    try:
        conninfo_to_dict(text)
    except (ProgrammingError, UnicodeError):
        raise ValueError("a PostgreSQL address such as postgresql://user:password@host:5432/database") from None
    return text or None


def public_url(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if text and not (good and text.rstrip("/") == f"{parts.scheme}://{parts.netloc}" and "@" not in text):
        raise ValueError(f"http:// or https:// and a host, without a path, not {_quote(text)}")
    return text.rstrip("/") or None


def service_url(text: str) -> str:
    """Return the address of a service, which may have a path."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "@" in text or not text.isprintable():
        raise ValueError("http:// or https:// and a host, optionally with a path, without a user name or a query")
    return text.rstrip("/")


def bootstrap_servers(text: str) -> str | None:
    """Return host:port pairs separated by commas; an IPv6 address is in brackets."""
    servers = [part.strip() for part in text.split(",") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not (host.strip("[]") and not any(c.isspace() or c in "/@" for c in host) and port.isascii() and port.isdigit()):
            raise ValueError(f"host:port, several separated by commas, not {_quote(text)}")
    return ",".join(servers) or None


def admin_api_key(text: str) -> str | None:
    if text and (len(text) < 16 or len(set(text)) < 8 or not all("!" <= character <= "~" for character in text)):
        raise ValueError("at least 16 visible ASCII characters without blanks, 8 of them different")
    return text or None


def one_of(words: Sequence[str]) -> Callable[[str], str]:
    """Return a parser that accepts the words in any case and returns them as they are spelled here."""
    spelled = {word.upper(): word for word in words}

    def parse(text: str) -> str:
        if text.upper() not in spelled:
            raise ValueError(f"one of {', '.join(words)}, not {_quote(text)}")
        return spelled[text.upper()]

    return parse


def networks(text: str) -> tuple[Network, ...]:
    return tuple(_network(part.strip()) for part in text.split(",") if part.strip())


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            f"a comma-separated list of networks such as 10.0.0.0/8,::1/128, without bits outside the mask, not {_quote(text)}"
        ) from None


def media_origins(text: str) -> tuple[str, ...]:
    """Return the origins for a Content-Security-Policy, in which a stray character would begin another rule."""
    parts = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    for part in parts:
        if not _MEDIA_ORIGIN.fullmatch(part):
            raise ValueError(
                f"a comma-separated list of origins such as https://cdn.example or https://*.cdn.example:8443, not {_quote(part)}"
            )
    return parts


_ORIGIN = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?", re.IGNORECASE)
_USUAL_PORTS = {"http": "80", "https": "443"}


def origins(text: str) -> tuple[str, ...]:
    """Return the origins as browsers send them: in lower case, without the default port. `*` must be alone."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if parts == ["*"]:
        return ("*",)
    matches = [_ORIGIN.fullmatch(part) for part in parts]
    if None in matches:
        raise ValueError(
            f"* alone, or origins such as https://app.example:8443, separated by commas, without a path, not {_quote(text)}"
        )
    named = [(match[1].lower(), match[2].lower(), match[3]) for match in matches if match is not None]
    texts = (
        f"{scheme}://{host}" if port in (None, _USUAL_PORTS[scheme]) else f"{scheme}://{host}:{port}"
        for scheme, host, port in named
    )
    return tuple(dict.fromkeys(texts))


def stripped(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda text: parse(text.strip()))
