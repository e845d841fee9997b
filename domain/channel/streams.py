"""The protocols of streams, and the addresses that a stream can have."""

from __future__ import annotations

from enum import IntEnum


class StreamProtocol(IntEnum):
    """The protocol of a stream. Names and numbers are part of the API."""

    HLS = 0
    HSS = 1
    DASH = 2
    HDS = 3
    HLSe = 4

    @classmethod
    def read(cls, value: object) -> StreamProtocol | None:
        """Return the protocol by its name in any case or by its number. Return None for anything else, so that a bad entry does
        not hide the others."""
        text = str(value).casefold()
        return next((protocol for protocol in cls if text in (protocol.name.casefold(), str(protocol.value))), None)


class StreamPlace(IntEnum):
    """The kinds of addresses of a stream."""

    CDN_PRIMARY = 0
    CDN_SECONDARY = 1
    ORIGIN_PRIMARY = 2
    ORIGIN_SECONDARY = 3
    PRIVATE = 4
