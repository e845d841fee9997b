"""Proxies in front of the server that are trusted to say whose request they pass on."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from cachetools import LRUCache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_KEPT: Final = 1000


class Proxies:
    """The networks of trusted proxies. What anybody else says in `X-Forwarded-…` is ignored: it could say anything."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = networks
        self._known: LRUCache[str, bool] = LRUCache(_KEPT)

    def trusted(self, address: str) -> bool:
        if not self._networks:
            return False
        found = self._known.get(address)
        if found is None:
            parsed = _parsed(address)
            found = self._known[address] = parsed is not None and any(parsed in network for network in self._networks)
        return found

    def client(self, proxy: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The address of the client: the last one in `X-Forwarded-For` that is not a trusted proxy's. Those before it were sent by
        the client and prove nothing. The proxy's own address where it names none."""
        sent = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
        for part in reversed(sent.split(",")):
            parsed = _parsed(part.strip())
            if parsed is None:
                return proxy
            if not self.trusted(str(parsed)):
                return str(parsed)
        return proxy


def forwarded_scheme(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """`https` where a proxy with TLS passes a request on without; None where it does not say."""
    schemes = [value for name, value in headers if name == b"x-forwarded-proto"]
    return schemes[-1].decode() if schemes and schemes[-1] in (b"http", b"https") else None


def share_of(address: str) -> str:
    """Return the address that limits per address count by. For IPv6 that is its network of 64 bits, which one customer has."""
    if ":" not in address:
        return address
    parsed = _parsed(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(parsed) >> 64 << 64)}/64"


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
