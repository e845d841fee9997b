"""Placeholders in addresses that one configuration provides for many Events."""

from __future__ import annotations

import re
from typing import Final

from domain.channel.streams import StreamProtocol

CLEAR: Final = "clear"
CENC: Final = "cenc"
CBCS: Final = "cbcs"

_CONTENT: Final = re.compile(r"\{contentId\}", re.IGNORECASE)
_PACKAGING: Final = re.compile(r"\{packaging\}", re.IGNORECASE)
_APPLE: Final = frozenset({StreamProtocol.HLS, StreamProtocol.HLSe})


def of_content(url: str, content: str) -> str:
    """Return a configured address with `{contentId}` replaced."""
    return _CONTENT.sub(lambda _: content, url)


def of_packaging(url: str, folder: str) -> str:
    """Return a configured address with `{packaging}` replaced."""
    return _PACKAGING.sub(lambda _: folder, url)


def packaging(protocol: StreamProtocol, *, vod_drm: bool) -> str:
    """Return the folder of a content that holds the package for a protocol."""
    if not vod_drm:
        return CLEAR
    return CBCS if protocol in _APPLE else CENC
