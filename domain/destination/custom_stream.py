"""Where a live stream to a CUSTOM destination goes: to the address of the publication, or to that of the destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.kernel.urls import origin

URL: Final = "cstm_streamUrl"
NAME: Final = "cstm_streamName"
NEEDS_NAME: Final = (
    f"is required beside a {URL} with another scheme, host or port than that of the destination, whose {NAME} is not sent there"
)


def stream_of(destination: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """`URL` and `NAME`: those of the publication, else those of the destination. The name of a stream is its key, so that of the
    destination goes only to the origin that it was given for."""
    given = {member: own[member] for member in (URL, NAME) if own.get(member)}
    return given if is_elsewhere(destination, own) else {**destination, **given}


def is_elsewhere(destination: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the publication has an address of another origin."""
    return bool(own.get(URL)) and origin(str(own[URL])) != origin(str(destination.get(URL, "")))
