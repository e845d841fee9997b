"""The placeholders of addresses that one configuration gives to many Events."""

from __future__ import annotations

import re
from typing import Final

from domain.configuration.streams import StreamProtocol

CLEAR: Final = "clear"
CENC: Final = "cenc"
CBCS: Final = "cbcs"

_CONTENT: Final = re.compile(r"\{contentId\}", re.IGNORECASE)
_PACKAGING: Final = re.compile(r"\{packaging\}", re.IGNORECASE)
_APPLE: Final = frozenset({StreamProtocol.HLS, StreamProtocol.HLSe})


def of_content(url: str, content: str) -> str:
    """A configured address with `{contentId}` replaced."""
    return _CONTENT.sub(lambda _: content, url)


def of_packaging(url: str, folder: str) -> str:
    """A configured address with `{packaging}` replaced."""
    return _PACKAGING.sub(lambda _: folder, url)


def packaging(protocol: StreamProtocol, *, vod_drm: bool) -> str:
    """The folder of a content in which the package for a protocol is."""
    if not vod_drm:
        return CLEAR
    return CBCS if protocol in _APPLE else CENC
