"""Text tracks that the master playlist of a package lists. The playlist may be of other hands: what is not in a folder beside that
of the package is left out."""

from __future__ import annotations

from re import compile as regex
from typing import Final

from domain.asset.values import CaptionKind
from workers.media.captions.tracks import TextTrack
from workers.media.errors import Unreadable
from workers.media.hls import attributes

MOST_LISTED: Final = 100
_PLACE: Final = regex(r"\.\./([a-z]{1,32})/([A-Za-z0-9][A-Za-z0-9._-]{0,200})\.m3u8")
_LANGUAGE: Final = regex(r"[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}")


def listed_tracks(master: str) -> list[TextTrack]:
    found: list[TextTrack] = []
    for line in master.splitlines():
        if not line.startswith("#EXT-X-MEDIA:") or "TYPE=SUBTITLES" not in line:
            continue
        try:
            given = attributes(line)
        except Unreadable:
            continue
        place, language = _PLACE.fullmatch(given.get("URI", "")), given.get("LANGUAGE", "und")
        if place is not None and _LANGUAGE.fullmatch(language) and len(found) < MOST_LISTED:
            name = given.get("NAME", language)
            found.append(TextTrack(name=name, language=language, kind=_kind(given), stem=place[2], folder=place[1]))
    return found


def _kind(given: dict[str, str]) -> CaptionKind:
    described = given.get("CHARACTERISTICS", "")
    if given.get("FORCED") == "YES":
        return CaptionKind.FORCED
    if "describes-video" in described:
        return CaptionKind.DESCRIPTIONS
    return CaptionKind.CAPTIONS if "transcribes-spoken-dialog" in described else CaptionKind.SUBTITLES
