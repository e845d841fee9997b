"""The files of an Event that anybody may fetch."""

from __future__ import annotations

from typing import Final

from domain.channel.placeholders import CBCS, CENC
from domain.event.values import EventState

PUBLIC: Final = frozenset({EventState.VOD_PUBLIC, EventState.REMIX_PUBLIC, EventState.ARCHIVER_PUBLIC, EventState.COMPOSE_PUBLIC})
"""The states in which anybody may watch the files of an Event. In other states only a client with a key may."""

ENCRYPTED: Final = frozenset({CENC, CBCS})
"""The folders of a content for packages whose tracks are all encrypted. Other files are treated as unencrypted."""

_REQUESTED: Final = "assets"
"""The folder of the media that clients have cut out, which may show any frame."""
_TEXTS: Final = ("captions", "subtitles")
"""The folders of text tracks, which packages refer to and which are never encrypted."""
_SHOWN: Final = (".jpg", ".jpeg", ".png", ".webp", ".vtt")


def is_withheld(name: str) -> bool:
    """Return True if a file of a protected Event is never delivered, with a key or without. This is every unencrypted file,
    except poster, thumbnails and sprites with their index, and text tracks. `name` is the path below the folder of the content."""
    folder, _, _ = name.partition("/")
    if folder in _TEXTS:
        return not name.lower().endswith((".vtt", ".m3u8"))
    return folder not in ENCRYPTED and (folder == _REQUESTED or not name.lower().endswith(_SHOWN))
