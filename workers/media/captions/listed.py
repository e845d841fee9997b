"""Text tracks in the master playlist of a package. The playlist may be from another source: tracks outside of the folders next to
that of the package are ignored."""

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
    """Return the text tracks of a master playlist. A playlist that cannot be read has none."""
    try:
        renditions = hls.read(master, most=_MOST_READ).renditions
    except Unreadable:
        return []
    tracks: list[TextTrack] = []
    for rendition in renditions:
        place, language = _PLACE.fullmatch(rendition.uri), rendition.language or "und"
        if rendition.type == "SUBTITLES" and place is not None and _LANGUAGE.fullmatch(language) and len(tracks) < MOST_LISTED:
            name = rendition.name or language
            tracks.append(TextTrack(name=name, language=language, kind=_kind(rendition), stem=place[2], folder=place[1]))
    return tracks


def _kind(listed: hls.Rendition) -> CaptionKind:
    if listed.forced:
        return CaptionKind.FORCED
    if "describes-video" in listed.characteristics:
        return CaptionKind.DESCRIPTIONS
    return CaptionKind.CAPTIONS if "transcribes-spoken-dialog" in listed.characteristics else CaptionKind.SUBTITLES
