"""Text tracks that the master playlist of a package lists. The playlist may be of other hands: what is not in a folder beside that
of the package is left out."""

from __future__ import annotations

from re import compile as regex
from typing import Final

from domain.asset.values import CaptionKind
from workers.media import hls
from workers.media.captions.tracks import TextTrack
from workers.media.errors import Unreadable

MOST_LISTED: Final = 100
_MOST_READ: Final = 1000
_PLACE: Final = regex(r"\.\./([a-z]{1,32})/([A-Za-z0-9][A-Za-z0-9._-]{0,200})\.m3u8")
_LANGUAGE: Final = regex(r"[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}")


def listed_tracks(master: str) -> list[TextTrack]:
    """List the text tracks of a master playlist. A playlist that cannot be read has none."""
    try:
        renditions = hls.read(master, most=_MOST_READ).renditions
    except Unreadable:
        return []
    found: list[TextTrack] = []
    for one in renditions:
        place, language = _PLACE.fullmatch(one.uri), one.language or "und"
        if one.type == "SUBTITLES" and place is not None and _LANGUAGE.fullmatch(language) and len(found) < MOST_LISTED:
            name = one.name or language
            found.append(TextTrack(name=name, language=language, kind=_kind(one), stem=place[2], folder=place[1]))
    return found


def _kind(listed: hls.Rendition) -> CaptionKind:
    if listed.forced:
        return CaptionKind.FORCED
    if "describes-video" in listed.characteristics:
        return CaptionKind.DESCRIPTIONS
    return CaptionKind.CAPTIONS if "transcribes-spoken-dialog" in listed.characteristics else CaptionKind.SUBTITLES
