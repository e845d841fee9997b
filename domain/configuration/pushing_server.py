"""The streaming server of a channel that pushes live publications itself: docs/reference/api/channels.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from domain.configuration.channel import ChannelDocument

WOWZA: Final = "wowza"


@dataclass(frozen=True, slots=True)
class PushingServer:
    """`url` is that of its REST interface, `source` the name of the stream in its application."""

    url: str
    application: str
    source: str
    user: str = ""
    password: str = field(default="", repr=False)


def pushing_server(channel: ChannelDocument) -> PushingServer | None:
    """Of the first encoder that has one. None: the product pushes."""
    for encoder in channel.encoders or ():
        server = encoder.streaming_server
        if server is None or (server.type or "").strip().casefold() != WOWZA:
            continue
        said = server.streaming_server_specific
        if said is not None and said.api_url and said.application and said.stream_name:
            url = said.api_url.strip().rstrip("/")
            return PushingServer(url, said.application, said.stream_name, said.user or "", said.password or "")
    return None
