"""The header Host: its syntax, and the names that the server answers to.

A server that answers to every name can be read by a web page of a stranger: the page's own name is made to lead to the server's
address (DNS rebinding), and the browser then takes both for one site.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,255})(?::(?P<port>[0-9]{1,5}))?")
_KEPT: Final = 1000


class Hosts:
    """Decides about values of Host. `names`: the only names that are answered, in lower case; `None`: every name. Addresses and
    `localhost` are always answered: no name server can point them elsewhere."""

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._names = names
        self.status = lru_cache(_KEPT)(self._status)
        """200 for a value, 400 where it is no host, 421 where it is not one of this server."""

    def _status(self, host: bytes) -> int:
        match = _HOST.fullmatch(host.decode("latin-1"))
        if match is None or int(match["port"] or 0) > 65535:
            return 400
        name = match["name"].lower().removesuffix(".")
        if name.startswith("["):
            return 200 if _is_address(name[1:-1]) else 400
        if self._names is None or name == "localhost" or name.endswith(".localhost") or name in self._names or _is_address(name):
            return 200
        return 421


def host_name(url: str) -> str:
    """The host of a URL, in lower case."""
    return urlsplit(url).hostname or ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
