"""Hosts of provisioned resources, and the placeholders for them in the addresses of a channel.

Provisioned values come from templates and services of others. A value that is not a host fills no placeholder, so that it cannot
change the rest of an address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

Host = Mapping[str, str]
"""The addresses of one resource, by the names of placeholders."""
Hosts = Mapping[str, Host]
"""Hosts by the names of their resources."""
LISTED: Final = "listedHosts"
"""The member of a resource that names the hosts which only the profile lists."""
NO_HOST: Final[Host] = MappingProxyType({})
NO_HOSTS: Final[Hosts] = MappingProxyType({})

_NAMES: Final = {name.casefold(): name for name in ("ipAddress", "internalIpAddress", "dns", "internalDns")}
_HOST: Final = re.compile(rf"\{{({'|'.join(_NAMES.values())})\}}", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
_NAME: Final = re.compile(r"[\w.-]{1,253}")


class ListedHost(dict[str, str]):
    """A host whose `listed` names come from an operator's profile and were not reported by a provisioner. No key is sent to
    them."""

    def __init__(self, names: Mapping[str, str], *, listed: Collection[str]) -> None:
        super().__init__(names)
        self.listed = listed


class ProvisionedHosts(Protocol):
    """Finds the hosts that were provisioned for Events."""

    async def hosts_of(self, events: Collection[UUID]) -> Mapping[UUID, Hosts]:
        """Return the hosts of each Event. Events without provisioned hosts are absent."""
        ...


def hosts_in(resources: Iterable[Mapping[str, Any]], *, static: bool = False) -> Hosts:
    """Return the hosts of provisioned resources, whose members may be spelled in any case. `static` says that the profile lists
    all of them."""
    hosts: dict[str, Host] = {}
    for resource in resources:
        members = {key.casefold(): value for key, value in resource.items()}
        names = {name: host for spelled, name in _NAMES.items() if (host := _host(members.get(spelled)))}
        listed_names = members.get(LISTED.casefold())
        listed = [name for name in names if static or (isinstance(listed_names, list) and name in listed_names)]
        hosts[str(members.get("name", ""))] = ListedHost(names, listed=listed) if listed else names
    return hosts


def merge_reported(listed: Mapping[str, Any], reported: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a resource of a profile with what a provisioner reports about it, and list the hosts that the provisioner does not
    report."""
    reported_names = {key.casefold() for key in reported}
    retained = {
        key: value for key, value in listed.items() if key in reported or key.casefold() not in reported_names & _NAMES.keys()
    }
    unreported = [
        _NAMES[key.casefold()]
        for key, value in retained.items()
        if key.casefold() in _NAMES.keys() - reported_names and _host(value)
    ]
    return {**retained, **reported, **({LISTED: unreported} if unreported else {})}


def is_listed(url: str, host: Host) -> bool:
    """Return True if a placeholder of the URL is filled with a host that only the profile lists."""
    return isinstance(host, ListedHost) and any(_NAMES[match[1].casefold()] in host.listed for match in _HOST.finditer(url))


def fill_placeholders(url: str, host: Host) -> str:
    """Fill the placeholders of an address. A placeholder without a value stays."""
    filled_url = _HOST.sub(lambda match: host.get(_NAMES[match[1].casefold()], match[0]), url)
    return filled_url if filled_url == url else filled_url.replace("[[", "[").replace("]]", "]")


def names_host(url: str) -> bool:
    """Return True if the URL has a placeholder that a resource can fill."""
    return _HOST.search(url) is not None


def has_placeholder(url: str) -> bool:
    """Return True if the URL has any placeholder that is not filled yet."""
    return _PLACEHOLDER.search(url) is not None


def _host(value: object) -> str:
    """Return a host in the form that an address needs; empty for a value that is not a host."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        address = ip_address(text)
    except ValueError:
        return text if _NAME.fullmatch(text) else ""
    if "%" in text:
        return ""
    return f"[{address}]" if address.version == 6 else text
