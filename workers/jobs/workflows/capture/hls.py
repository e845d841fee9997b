"""HLS playlists. RFC 8216.

Of what a playlist may say, only what a capture needs is read; what would make a capture wrong is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from re import compile as regex
from typing import Final

from workers.jobs.workflows.capture.segments import LONGEST, MOST_ENTRIES, Part, Resource, SourceFault, joined
from workers.media.hls_text import LongLine, attributes, time_of_day, whole, within

_SECONDS: Final = regex(r"\d{1,9}(?:\.\d{1,18})?")
_RANGE: Final = regex(r"(\d{1,18})(?:@(\d{1,18}))?")


@dataclass(frozen=True, slots=True)
class Variant:
    """A rendition of a master playlist. `audio` is the URL of the playlist of its audio, where that is separate."""

    url: str
    bandwidth: int
    pixels: int
    audio: str | None


@dataclass(frozen=True, slots=True)
class Subtitles:
    """A rendition of text: `language` as the playlist has it, `kind` as a caption of ours."""

    url: str
    language: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment of a media playlist. `uri` is relative to it: most entries are known already, and are not looked at again.
    `program_time` is seconds since 1970, where the playlist says it for this segment."""

    sequence: int
    uri: str
    part: Part | None
    lasts: float
    init: Resource | None
    breaks: bool
    absent: bool
    program_time: float | None


@dataclass(frozen=True, slots=True)
class MediaPlaylist:
    """`target`: no segment is longer, in seconds, rounded. `ended`: it does not change any more."""

    url: str
    target: float
    ended: bool
    entries: tuple[Entry, ...]

    def resource(self, entry: Entry) -> Resource:
        return Resource(joined(self.url, entry.uri), entry.part)


def parse(body: bytes, url: str) -> MediaPlaylist | tuple[Variant, ...]:
    """A media playlist, or the variants of a master playlist, the highest first. Raises `SourceFault`."""
    try:
        lines = [line.strip() for line in body.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise SourceFault("The playlist is not text in UTF-8.", final=True) from None
    if not lines or lines[0] != "#EXTM3U":
        raise SourceFault("What came is no HLS playlist: it does not begin with #EXTM3U.", final=True)
    if any(line.startswith("#EXT-X-DEFINE") for line in lines):
        raise SourceFault("The playlist has variables (EXT-X-DEFINE), which are not supported.", final=True)
    if any(line.startswith("#EXT-X-STREAM-INF:") for line in lines):
        return _variants(lines, url)
    return _Media(url).read(lines)


def subtitles(body: bytes, url: str) -> list[Subtitles]:
    """The text of a master playlist, each address once. Of another playlist there is none. Raises `SourceFault`."""
    found: dict[str, Subtitles] = {}
    for line in body.decode("utf-8-sig", "replace").splitlines():
        if not line.startswith("#EXT-X-MEDIA:"):
            continue
        media = _attributes(line.strip())
        if media.get("TYPE") == "SUBTITLES" and media.get("URI"):
            address, described = joined(url, media["URI"]), media.get("CHARACTERISTICS", "")
            kind = "descriptions" if "describes-video" in described else "captions" if "transcribes" in described else "subtitles"
            kind = "forced" if media.get("FORCED") == "YES" else kind
            found.setdefault(address, Subtitles(address, media.get("LANGUAGE", ""), kind, media.get("NAME", "")))
    return list(found.values())


def _variants(lines: list[str], url: str) -> tuple[Variant, ...]:
    audio = _audio(lines, url)
    found: list[Variant] = []
    stream: dict[str, str] | None = None
    for line in lines:
        if line.startswith("#EXT-X-STREAM-INF:"):
            stream = _attributes(line)
        elif line and not line.startswith("#") and stream is not None:
            width, _, height = stream.get("RESOLUTION", "").partition("x")
            pixels = (whole(width) or 0) * (whole(height) or 0)
            found.append(
                Variant(joined(url, line), whole(stream.get("BANDWIDTH", "")) or 0, pixels, audio.get(stream.get("AUDIO", "")))
            )
            stream = None
            if len(found) > MOST_ENTRIES:
                raise _too_many()
    if not found:
        raise SourceFault("The master playlist lists no rendition.", final=True)
    return tuple(sorted(found, key=lambda one: (one.pixels, one.bandwidth), reverse=True))


def _audio(lines: list[str], url: str) -> dict[str, str]:
    """The playlist of each group's audio: the default one, else the first. Audio without one is within the video's segments."""
    found: dict[str, tuple[bool, str | None]] = {}
    for line in lines:
        if line.startswith("#EXT-X-MEDIA:"):
            media = _attributes(line)
            default = media.get("DEFAULT") == "YES"
            group = media.get("GROUP-ID", "")
            if media.get("TYPE") == "AUDIO" and (group not in found or (default and not found[group][0])):
                found[group] = (default, joined(url, media["URI"]) if media.get("URI") else None)
    return {group: uri for group, (_, uri) in found.items() if uri is not None}


class _Media:
    """Reads a media playlist line by line."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._target = 0.0
        self._ended = False
        self._sequence = 0
        self._entries: list[Entry] = []
        self._init: Resource | None = None
        self._behind = 0
        """Where the part of the file before ended: the next may begin there without saying so."""
        self._part_of = ""
        self._begin()

    def _begin(self) -> None:
        self._lasts: float | None = None
        self._range = ""
        self._breaks = False
        self._absent = False
        self._time: float | None = None

    def read(self, lines: list[str]) -> MediaPlaylist:
        for line in lines[1:]:
            if line.startswith("#EXT"):
                self._tag(*_split(line))
            elif line and not line.startswith("#"):
                self._entry(line)
        if self._target <= 0:
            self._target = max((one.lasts for one in self._entries), default=0.0)
        if not self._target:
            raise SourceFault("The playlist has neither a target duration nor a segment.")
        return MediaPlaylist(self._url, self._target, self._ended, tuple(self._entries))

    def _tag(self, name: str, value: str) -> None:
        match name:
            case "#EXTINF":
                self._lasts = _duration(value.partition(",")[0])
            case "#EXT-X-TARGETDURATION":
                self._target = _duration(value)
            case "#EXT-X-MEDIA-SEQUENCE":
                self._sequence = whole(value) or 0
            case "#EXT-X-ENDLIST":
                self._ended = True
            case "#EXT-X-BYTERANGE":
                self._range = value
            case "#EXT-X-DISCONTINUITY":
                self._breaks = True
            case "#EXT-X-GAP":
                self._absent = True
            case "#EXT-X-PROGRAM-DATE-TIME":
                self._time = time_of_day(value)
            case "#EXT-X-MAP":
                self._init = self._map(_attributes(f":{value}"))
            case "#EXT-X-KEY":
                method = _attributes(f":{value}").get("METHOD")
                if method != "NONE":
                    raise SourceFault("The segments are encrypted (EXT-X-KEY); only a clear stream is captured.", final=True)
            case "#EXT-X-I-FRAMES-ONLY":
                raise SourceFault("The playlist has key frames only.", final=True)

    def _entry(self, uri: str) -> None:
        if self._lasts is None:
            raise SourceFault("A segment of the playlist has no duration (EXTINF).", final=True)
        if len(self._entries) >= MOST_ENTRIES:
            raise _too_many()
        try:
            within(uri)
        except LongLine as fault:
            raise _long(fault) from None
        part = self._part(uri) if self._range else None
        number = self._sequence + len(self._entries)
        self._entries.append(Entry(number, uri, part, self._lasts, self._init, self._breaks, self._absent, self._time))
        self._begin()

    def _part(self, uri: str) -> Part:
        found = _RANGE.fullmatch(self._range)
        if found is None:
            raise SourceFault("A byte range of the playlist cannot be read.", final=True)
        begins = int(found[2]) if found[2] else self._behind if self._part_of == uri else None
        if begins is None:
            raise SourceFault("A byte range of the playlist does not say where it begins.", final=True)
        self._behind, self._part_of = begins + int(found[1]), uri
        return Part(begins, int(found[1]))

    def _map(self, given: dict[str, str]) -> Resource:
        if "URI" not in given:
            raise SourceFault("The playlist names no file for its initialization section (EXT-X-MAP).", final=True)
        found = _RANGE.fullmatch(given.get("BYTERANGE", ""))
        part = Part(int(found[2] or 0), int(found[1])) if found is not None else None
        return Resource(joined(self._url, given["URI"]), part)


def _split(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value


def _attributes(line: str) -> dict[str, str]:
    try:
        return attributes(line)
    except LongLine as fault:
        raise _long(fault) from None


def _duration(text: str) -> float:
    found = float(text) if _SECONDS.fullmatch(text.strip()) else -1.0
    if not 0 <= found <= LONGEST:
        raise SourceFault(f"A duration of the playlist is no number of seconds, or more than {LONGEST:g}.", final=True)
    return found


def _long(fault: LongLine) -> SourceFault:
    return SourceFault(f"The playlist cannot be read: {fault}.", final=True)


def _too_many() -> SourceFault:
    return SourceFault(f"The playlist has more than {MOST_ENTRIES} entries.", final=True)
