"""A channel's streaming server that pushes live publications itself: docs/reference/api/channels.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from domain.channel.channel import ChannelDocument

WOWZA: Final = "wowza"


@dataclass(frozen=True, slots=True)
class PushingServer:
    """A streaming server. `url` is the address of its REST interface, `source` the name of the stream in its application."""

    url: str
    application: str
    source: str
    user: str = ""
    password: str = field(default="", repr=False)


def pushing_server(channel: ChannelDocument) -> PushingServer | None:
    """Return the server of the first encoder that has one. None means that the product pushes."""
    for encoder in channel.encoders or ():
        server = encoder.streaming_server
        if server is None or (server.type or "").strip().casefold() != WOWZA:
            continue
        settings = server.streaming_server_specific
        if settings is not None and settings.api_url and settings.application and settings.stream_name:
            url = settings.api_url.strip().rstrip("/")
            return PushingServer(url, settings.application, settings.stream_name, settings.user or "", settings.password or "")
    return None
