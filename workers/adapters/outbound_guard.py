"""The guard of outbound requests: allowed addresses and URLs: docs/adr/0017-one-guarded-outbound-client.md.

A check of the URL alone is not enough: a name may resolve to another address between check and connect, and an address has many
spellings. So the decisive check is in `AddressGuard.socket`, which makes the socket for each connection to one address. The other
checks come first, to refuse a name when any of its addresses is not allowed, and to give a clear reason.
"""

from __future__ import annotations

import logging
import re
import socket
from asyncio import get_running_loop
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from workers.ports.outbound import OutboundRefused

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

KNOWN_URLS = 4096
_log = logging.getLogger(__name__)
_NAME_BYTES = 253

# IANA, IPv4 Special-Purpose Address Registry, including networks that it calls global but that lead to no receiver.
# The last one is an address of the cloud Azure, where each of its machines gets its own secrets.
_SPECIAL_4 = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
    192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4 168.63.129.16/32
"""
_INSIDE_4 = tuple(map(IPv4Network, _SPECIAL_4.split()))

# Public addresses are allocated only from this network; NAT64, unique, link-local, multicast, SRv6 and the rest are outside.
_UNICAST_6 = IPv6Network("2000::/3")
# IANA, IPv6 Special-Purpose Address Registry: protocol assignments with Teredo, 6to4, documentation, the former 6bone, AS112.
_SPECIAL_6 = "2001::/23 2001:db8::/32 2002::/16 3ffe::/16 3fff::/20 2620:4f:8000::/48"
_INSIDE_6 = tuple(map(IPv6Network, _SPECIAL_6.split()))

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BELOW_ORIGIN = re.compile(r"/origin/[A-Za-z0-9._()/-]+")


def public(address: Address) -> bool:
    """Return True if the address may belong to another party on the internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _INSIDE_4)
    return address in _UNICAST_6 and not any(address in network for network in _INSIDE_6)


class NotPublic(OSError):
    """Raised by the last check. It is an `OSError`, because only after such an error is the next of several addresses tried.

    All have the same text, or the libraries in between would merge two of them into one plain `OSError`.
    """

    def __init__(self, address: str) -> None:
        super().__init__("the address is not public")
        self.address = address

    def refusal(self) -> OutboundRefused:
        """Return the refusal. The address is only in the process's log, because the caller may not know the network of a name's
        answer."""
        _log.warning("an outbound call was refused: the address %s is not public and not in an allowed network", self.address)
        return OutboundRefused("The address is not public and not in an allowed network.")


class AddressGuard:
    """Permits public addresses, and those of the networks that the operator allows. `origin` is the address of the built-in origin,
    such as `http://127.0.0.1:8080`: URLs below its `/origin/` may be reached too, at exactly this host and port."""

    def __init__(self, allow: Sequence[Network] = (), *, origin: str | None = None) -> None:
        self._allow = tuple(allow)
        self._origin = None if origin is None else _OriginGuard(URL(origin))

    def towards(self, url: URL) -> AddressGuard:
        """Return the guard for connections of this URL, since the built-in origin has a guard of its own. Connections that were
        opened by one guard must not be used for URLs of another."""
        return self._origin if self._origin is not None and self._origin.holds(url) else self

    def permits(self, address: str) -> bool:
        """Return True if the address is permitted. IPv4 written as IPv6 is checked as IPv4. A text that is not an address is not
        permitted."""
        try:
            judged = ip_address(address)
        except ValueError:
            return False
        if isinstance(judged, IPv6Address) and judged.ipv4_mapped is not None:
            judged = judged.ipv4_mapped
        return public(judged) or any(judged in network for network in self._allow)

    def socket(self, where: AddrInfoType) -> socket.socket:
        """Return a socket for a connection to exactly this address. Raises `NotPublic`."""
        family, kind, protocol, _, place = where
        address = str(place[0])
        if family not in (socket.AF_INET, socket.AF_INET6) or not self.permits(address):
            raise NotPublic(address)
        return socket.socket(family, kind, protocol)


class _OriginGuard(AddressGuard):
    """Permits the address of the built-in origin at its port. If the origin has a name, all addresses of that name are permitted,
    because the operator chose it."""

    def __init__(self, origin: URL) -> None:
        super().__init__()
        self._where = origin.origin()

    def holds(self, url: URL) -> bool:
        return url.origin() == self._where and _BELOW_ORIGIN.fullmatch(url.raw_path) is not None and ".." not in url.raw_path

    def towards(self, url: URL) -> AddressGuard:
        return self

    def permits(self, address: str) -> bool:
        host = self._where.raw_host or ""
        return not _means_address(host) or _same(host, address)

    def socket(self, where: AddrInfoType) -> socket.socket:
        if where[4][1] != self._where.port:
            raise NotPublic(str(where[4][0]))
        return super().socket(where)


class GuardedResolver(AbstractResolver):
    """The resolver of the system. A name with an address that is not permitted is refused."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        addresses = await self.addresses(host, port, family=family)
        if not addresses:
            raise OSError(socket.EAI_NONAME, "the name has no address")
        for address in addresses:
            if not self._guard.permits(address["host"]):
                raise NotPublic(address["host"]).refusal()
        return addresses

    async def addresses(self, host: str, port: int, *, family: socket.AddressFamily) -> list[ResolveResult]:
        """Return all addresses of a name, without zones: link-local addresses cannot be reached."""
        answers = await get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        return [
            ResolveResult(hostname=host, host=str(place[0]), port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST)
            for kind, _, protocol, _, place in answers
        ]

    async def close(self) -> None:
        return None


@lru_cache(KNOWN_URLS)
def target(url: str) -> URL:
    """Return the parsed URL. Ambiguous URLs are refused, in particular unusual spellings of addresses. Raises `OutboundRefused`."""
    if not url.isprintable() or " " in url or "\\" in url:
        raise OutboundRefused("The URL contains spaces, backslashes or unprintable characters.")
    scheme, separator, rest = url.partition("://")
    if scheme.lower() not in ("http", "https") or not separator:
        raise OutboundRefused("The URL does not begin with http:// or https://.")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise OutboundRefused("The URL contains a user name or a password, which must be set separately.")
    try:
        parsed = URL(url)
        host, port = parsed.raw_host, parsed.port
    except ValueError:
        raise OutboundRefused("The URL is not valid.") from None
    if not port:
        raise OutboundRefused("The port of the URL is not between 1 and 65535.")
    if not host or not (_is_address(host) and authority.isascii() if _means_address(host) else _is_name(host)):
        raise OutboundRefused("The host of the URL is neither a name nor an address in its usual form.")
    return parsed


def _means_address(host: str) -> bool:
    """Return True if the last label is a number (URL Standard, "ends in a number checker")."""
    return ":" in host or _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]) is not None


def _is_address(host: str) -> bool:
    """Return True for four decimal numbers, or IPv6 without a zone."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _same(host: str, address: str) -> bool:
    try:
        return ip_address(host) == ip_address(address)
    except ValueError:
        return False


def _is_name(host: str) -> bool:
    name = host.removesuffix(".")
    return len(name) <= _NAME_BYTES and all(_LABEL.fullmatch(label) for label in name.split("."))
