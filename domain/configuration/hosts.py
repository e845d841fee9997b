"""Hosts of provisioned resources, and the placeholders that stand for them in the addresses of a channel.

What provisioning tells comes from templates and services of others: a value that is no host fills nothing, so that it cannot change
the rest of an address."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

Host = Mapping[str, str]
"""What is known of one resource, by the names of placeholders."""
Hosts = Mapping[str, Host]
"""By the names of resources."""
LISTED: Final = "listedHosts"
"""The member of a resource that names its hosts of which a profile alone speaks."""
NO_HOST: Final[Host] = MappingProxyType({})
NO_HOSTS: Final[Hosts] = MappingProxyType({})

_NAMES: Final = {name.casefold(): name for name in ("ipAddress", "internalIpAddress", "dns", "internalDns")}
_HOST: Final = re.compile(rf"\{{({'|'.join(_NAMES.values())})\}}", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
_NAME: Final = re.compile(r"[\w.-]{1,253}")


class ListedHost(dict[str, str]):
    """A host of which some names are as an operator wrote them in a profile, and no provisioner told them. No key is sent there."""

    def __init__(self, known: Mapping[str, str], *, listed: Collection[str]) -> None:
        super().__init__(known)
        self.listed = listed


class ProvisionedHosts(Protocol):
    """What was provisioned for Events."""

    async def hosts_of(self, events: Collection[UUID]) -> Mapping[UUID, Hosts]:
        """Those for which nothing was provisioned are absent."""
        ...


def hosts_in(resources: Iterable[Mapping[str, Any]], *, static: bool = False) -> Hosts:
    """The hosts of provisioned resources, whose members may be spelled in any case. `static`: all are as the profile lists them."""
    found: dict[str, Host] = {}
    for resource in resources:
        members = {key.casefold(): value for key, value in resource.items()}
        known = {name: host for spelled, name in _NAMES.items() if (host := _host(members.get(spelled)))}
        named = members.get(LISTED.casefold())
        listed = [name for name in known if static or (isinstance(named, list) and name in named)]
        found[str(members.get("name", ""))] = ListedHost(known, listed=listed) if listed else known
    return found


def with_told(listed: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A resource of a profile with what a provisioner tells of it, and the names of the hosts that it does not tell."""
    spoken = {key.casefold() for key in told}
    kept = {key: value for key, value in listed.items() if key in told or key.casefold() not in spoken & _NAMES.keys()}
    untold = [_NAMES[key.casefold()] for key, value in kept.items() if key.casefold() in _NAMES.keys() - spoken and _host(value)]
    return {**kept, **told, **({LISTED: untold} if untold else {})}


def is_listed(url: str, host: Host) -> bool:
    """Whether a placeholder in it is filled with what a profile alone says."""
    return isinstance(host, ListedHost) and any(_NAMES[found[1].casefold()] in host.listed for found in _HOST.finditer(url))


def filled(url: str, host: Host) -> str:
    """A placeholder without a value stays."""
    told = _HOST.sub(lambda found: host.get(_NAMES[found[1].casefold()], found[0]), url)
    return told if told == url else told.replace("[[", "[").replace("]]", "]")


def names_host(url: str) -> bool:
    """Whether a resource can fill a placeholder of it."""
    return _HOST.search(url) is not None


def is_open(url: str) -> bool:
    """Whether anything in it is still to be filled, by whatever."""
    return _PLACEHOLDER.search(url) is not None


def _host(value: object) -> str:
    """As it is written in an address; empty for what is no host."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        address = ip_address(text)
    except ValueError:
        return text if _NAME.fullmatch(text) else ""
    if "%" in text:
        return ""
    return f"[{address}]" if address.version == 6 else text
