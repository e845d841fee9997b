"""The target of a live stream to a CUSTOM destination: the address of the publication, or that of the destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.kernel.urls import origin

URL: Final = "cstm_streamUrl"
NAME: Final = "cstm_streamName"
NEEDS_NAME: Final = (
    f"is required with a {URL} whose scheme, host or port differs from the destination's, because the destination's {NAME} is not "
    "sent there"
)


def stream_of(destination: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `URL` and `NAME` of the publication, else those of the destination. The name of a stream is its key, so the
    destination's name is sent only to the origin that it was given for."""
    own_values = {member: own[member] for member in (URL, NAME) if own.get(member)}
    return own_values if is_elsewhere(destination, own) else {**destination, **own_values}


def is_elsewhere(destination: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Return True if the publication has an address of another origin."""
    return bool(own.get(URL)) and origin(str(own[URL])) != origin(str(destination.get(URL, "")))
