"""Which files of an Event anybody may fetch."""

from __future__ import annotations

from typing import Final

from domain.configuration.placeholders import CBCS, CENC
from domain.media_event.values import EventState

PUBLIC: Final = frozenset({EventState.VOD_PUBLIC, EventState.REMIX_PUBLIC, EventState.ARCHIVER_PUBLIC, EventState.COMPOSE_PUBLIC})
"""In these states everybody may watch the files of an Event. In others a client with a key may."""

ENCRYPTED: Final = frozenset({CENC, CBCS})
"""The folders of a content for packages whose tracks are all encrypted. What lies elsewhere is taken for clear."""

_REQUESTED: Final = "assets"
"""What clients have cut out, of any frame."""
_TEXTS: Final = ("captions", "subtitles")
"""The folders of text tracks, which packages refer to and which are never encrypted."""
_SHOWN: Final = (".jpg", ".jpeg", ".png", ".webp", ".vtt")


def is_withheld(name: str) -> bool:
    """Whether nobody gets the file of a protected Event, with a key or without: everything in the clear, but for poster,
    thumbnails and sprites with their index, and text tracks. `name` is the path below the folder of the content."""
    folder, _, _ = name.partition("/")
    if folder in _TEXTS:
        return not name.lower().endswith((".vtt", ".m3u8"))
    return folder not in ENCRYPTED and (folder == _REQUESTED or not name.lower().endswith(_SHOWN))
