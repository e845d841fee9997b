"""Media types of published files by their extensions."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

UNKNOWN: Final = "application/octet-stream"

_TYPES: Final = MappingProxyType(
    {
        "m3u8": "application/vnd.apple.mpegurl",
        "mpd": "application/dash+xml",
        "ism": "application/smil+xml",
        "mp4": "video/mp4",
        "m4v": "video/mp4",
        "m4a": "audio/mp4",
        "m4s": "video/iso.segment",
        "ts": "video/mp2t",
        "webm": "video/webm",
        "vtt": "text/vtt; charset=utf-8",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "png": "image/png",
        "gif": "image/gif",
        "webp": "image/webp",
        "json": "application/json",
    }
)


def media_type(name: str) -> str:
    """Return the media type of a file. Unknown types are served for download only: a published page must not run with the rights of
    this origin."""
    _, dot, extension = name.rpartition(".")
    return _TYPES.get(extension.lower(), UNKNOWN) if dot else UNKNOWN
