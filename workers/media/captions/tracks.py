"""Text tracks in the packages of a film: lines of the HLS master playlist, and adaptation sets of the DASH manifest.

Only these two texts change, never the picture. Each function is idempotent, so it may run again after any change. A track belongs
to the folder of its files; the tracks of other folders stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from re import compile as regex
from typing import Final
from urllib.parse import quote

from lxml import etree

from domain.asset.values import CAPTIONS, CaptionKind
from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml
from workers.media import hls
from workers.media.captions import webvtt
from workers.media.captions.cues import Cue
from workers.media.errors import Unreadable
from workers.media.hls import attributes

_GROUP: Final = "text"
_MPD: Final = "{urn:mpeg:dash:schema:mpd:2011}"
_ROLES: Final = "urn:mpeg:dash:role:2011"
_PURPOSES: Final = "urn:tva:metadata:cs:AudioPurposeCS:2007"
_DASH: Final = {
    CaptionKind.CAPTIONS: ("caption", "2"),
    CaptionKind.SUBTITLES: ("subtitle", None),
    CaptionKind.DESCRIPTIONS: ("description", "1"),
    CaptionKind.FORCED: ("forced-subtitle", None),
}
"""The role, and the audience of the text: 1 for visually impaired people, 2 for hearing-impaired people."""
_HLS: Final = {
    CaptionKind.CAPTIONS: "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound",
    CaptionKind.DESCRIPTIONS: "public.accessibility.describes-video",
}
_BANDWIDTH: Final = 1000
_JOINING: Final = frozenset("\u200c\u200d\u200e\u200f")
"""Invisible characters that belong to the spelling: of Persian and Hindi, of families of emoji, of names in two directions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTrack:
    """A text track. `folder` is below that of the content, `stem` the name of its files there without extensions. `language` is a
    BCP 47 tag."""

    name: str
    language: str
    kind: CaptionKind
    stem: str
    folder: str = CAPTIONS

    @property
    def file(self) -> str:
        """The path of the whole text below the folder of the content."""
        return f"{self.folder}/{self.stem}.vtt"

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files of the track; each file comes before those that refer to it."""
        return (self.file, f"{self.folder}/{self.stem}.segments.vtt", self.playlist)

    @property
    def playlist(self) -> str:
        return f"{self.folder}/{self.stem}.m3u8"


def shown_name(name: str) -> str:
    """Return the name in one line, without characters that would change how the text around it is shown. It is empty if nothing of
    it is visible."""
    seen = "".join(
        character if character.isprintable() or character in _JOINING else " " if character.isspace() else "" for character in name
    )
    return " ".join(seen.split()) if any(character not in _JOINING for character in seen) else ""


def track_files(track: TextTrack, cues: Sequence[Cue], *, lasts: float) -> dict[str, bytes]:
    """Return the contents of the files of a track by their names below the folder of the content. `lasts` is the length of the film
    in seconds."""
    segments, playlist = webvtt.segments(cues, lasts=lasts, name=f"{track.stem}.segments.vtt")
    return dict(zip(track.files, (webvtt.whole(cues).encode(), segments, playlist.encode()), strict=True))


def in_playlist(master: str, tracks: Sequence[TextTrack], *, folder: str = CAPTIONS, stem: str = "") -> str:
    """Return the master playlist of a package in a folder next to `folder`, with exactly these tracks of the folder. If `stem` is
    given, only the tracks with this stem are replaced."""
    lines = [line for line in master.splitlines() if not _is_text(line, f'"{_place(folder, stem)}')]
    others = {_attribute(line, "NAME") for line in lines if _is_text(line)}
    added = list(_media(tracks, others))
    grouped = bool(added or others)
    made = [_with_group(line, grouped) if line.startswith("#EXT-X-STREAM-INF:") else line for line in lines]
    at = next((number for number, line in enumerate(made) if line.startswith("#EXT-X-STREAM-INF:")), len(made))
    return "".join(f"{line}\n" for line in (*made[:at], *added, *made[at:]))


def in_manifest(manifest: bytes, tracks: Sequence[TextTrack], *, folder: str = CAPTIONS, stem: str = "") -> bytes:
    """Return the DASH manifest of a package, changed as `in_playlist` changes a playlist. Raise `ValueError` if it is not a
    manifest."""
    try:
        mpd = parsed_xml(manifest).getroot()
    except (NotXml, HasDoctype) as fault:
        raise ValueError("it is not a manifest") from fault
    for period in mpd.findall(f"{_MPD}Period"):
        before = [adaptation for adaptation in period.findall(f"{_MPD}AdaptationSet") if _is_in(adaptation, _place(folder, stem))]
        for adaptation in before:
            period.remove(adaptation)
        sets = period.findall(f"{_MPD}AdaptationSet")
        at = period.index(sets[-1]) + 1 if sets else len(period)
        for track in reversed(tracks):
            period.insert(at, _adaptation_set(track))
    etree.indent(mpd)
    return etree.tostring(mpd, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _is_text(line: str, uri: str = "") -> bool:
    return line.startswith("#EXT-X-MEDIA:") and "TYPE=SUBTITLES" in line and uri in line


def _attribute(line: str, name: str) -> str:
    return attributes(line).get(name, "")


def _media(tracks: Sequence[TextTrack], taken: set[str]) -> Iterator[str]:
    """Yield the tags of the tracks. Equal names are distinguished by their kinds, and then by numbers: names of a group must be
    unique."""
    for track in tracks:
        plain = shown_name(track.name).replace('"', "'") or track.language
        name, number = plain, 1
        while name in taken:
            name = f"{plain} ({track.kind.value})" if number == 1 else f"{plain} ({track.kind.value} {number})"
            number += 1
        taken.add(name)
        forced = ",FORCED=YES" if track.kind is CaptionKind.FORCED else ""
        described = f',CHARACTERISTICS="{_HLS[track.kind]}"' if track.kind in _HLS else ""
        yield (
            f'#EXT-X-MEDIA:TYPE=SUBTITLES,URI="../{quote(track.playlist)}",GROUP-ID="{_GROUP}",LANGUAGE="{track.language}",NAME="{name}",'
            f"DEFAULT=NO,AUTOSELECT=YES{forced}{described}"
        )


def _with_group(line: str, grouped: bool) -> str:
    """Return the tag of a variant with the group of its texts, or without one."""
    before = _attribute(line, "SUBTITLES")
    plain = line.replace(f',SUBTITLES="{before}"', "") if before else line
    return f'{plain},SUBTITLES="{_GROUP}"' if grouped else plain


def _place(folder: str, stem: str) -> str:
    return f"../{folder}/{quote(stem)}." if stem else f"../{folder}/"


def _is_in(adaptation: etree._Element, place: str) -> bool:
    return any((url.text or "").startswith(place) for url in adaptation.iter(f"{_MPD}BaseURL"))


def _adaptation_set(track: TextTrack) -> etree._Element:
    role, purpose = _DASH[track.kind]
    made = etree.Element(f"{_MPD}AdaptationSet", contentType="text", mimeType="text/vtt", lang=track.language)
    etree.SubElement(made, f"{_MPD}Label").text = shown_name(track.name) or track.language
    if purpose is not None:
        etree.SubElement(made, f"{_MPD}Accessibility", schemeIdUri=_PURPOSES, value=purpose)
    etree.SubElement(made, f"{_MPD}Role", schemeIdUri=_ROLES, value=role)
    name = f"{track.folder}-{track.stem}"
    identity = "".join(character if character.isalnum() and character.isascii() else "-" for character in name)
    representation = etree.SubElement(made, f"{_MPD}Representation", id=identity, bandwidth=str(_BANDWIDTH))
    etree.SubElement(representation, f"{_MPD}BaseURL").text = f"../{quote(track.file)}"
    return made


# Text tracks in the master playlist of a package. The playlist may be from another source: tracks outside of the folders next to
# that of the package are ignored.

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


def _kind(listed: hls.HlsRendition) -> CaptionKind:
    if listed.forced:
        return CaptionKind.FORCED
    if "describes-video" in listed.characteristics:
        return CaptionKind.DESCRIPTIONS
    return CaptionKind.CAPTIONS if "transcribes-spoken-dialog" in listed.characteristics else CaptionKind.SUBTITLES
