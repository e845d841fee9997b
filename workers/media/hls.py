"""HLS playlists (RFC 8216): one reader, whose time and memory are bounded by the size of the text, and functions for writers.

The reader checks only the form: its callers decide what of a playlist is supported, and how much of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from re import compile as regex
from typing import Final, NamedTuple

from domain.kernel.iso_8601 import moment_of
from workers.media.errors import Unreadable
from workers.media.resources import ResourceRange

BEGIN: Final = "#EXTM3U"
UNKNOWN_DURATION: Final = -1.0
LONGEST_LINE: Final = 16_384
"""The largest number of characters of a line that is parsed: a tag with attributes, or an address. Other tags may be longer."""
MOST_LINES: Final = 500_000
_MOST_ATTRIBUTES: Final = 1024 * 1024
"""The largest number of characters of all tags with attributes: they take far longer to parse than entries do."""
_ATTRIBUTE: Final = regex(r'\s*([A-Z0-9-]{1,64})=(?:"([^"]*)"|([^",\s]*))\s*(?:,|$)')
_LATEST: Final = 32_503_680_000.0
"""The year 3000. Durations are added to the stated times."""
_WHOLE: Final = regex(r"[0-9]{1,18}")
_SECONDS: Final = regex(r"[0-9]{1,9}(?:\.[0-9]{0,18})?")
_RANGE: Final = regex(r"([0-9]{1,18})(?:@([0-9]{1,18}))?")
_OF_ENTRY: Final = ("#EXTINF:", "#EXT-X-PROGRAM-DATE-TIME:", "#EXT-X-DISCONTINUITY", "#EXT-X-GAP", "#EXT-X-BYTERANGE:")
"""Tags of one entry. They are skipped if the entry is."""


class InitSection(NamedTuple):
    """An initialization section."""

    uri: str
    part: ResourceRange | None = None


class HlsVariant(NamedTuple):
    """A rendition of the picture. `audio` is the group of its sounds; empty if it contains them."""

    uri: str
    bandwidth: int
    width: int
    height: int
    codecs: str
    audio: str


class HlsRendition(NamedTuple):
    """A rendition that EXT-X-MEDIA declares, such as a sound. `uri` is empty if it is in the same segments as the picture."""

    type: str
    group: str
    name: str
    language: str
    uri: str
    default: bool
    forced: bool
    characteristics: str


class PlaylistEntry(NamedTuple):
    """A segment. `uri` is as it is written. `lasts` is `UNKNOWN_DURATION` if its duration is missing or not a number of seconds.
    `time` is in seconds since 1970, if the playlist states it for this segment; `absent` is True after EXT-X-GAP."""

    sequence: int
    uri: str
    lasts: float
    part: ResourceRange | None
    init: InitSection | None
    breaks: bool
    absent: bool
    time: float | None


@dataclass(frozen=True, slots=True)
class HlsPlaylist:
    """A parsed playlist. `entries` are those of a media playlist, `variants` and `renditions` those of a master playlist. `target`
    is None if it is missing or not a number of seconds."""

    master: bool
    variants: Sequence[HlsVariant] = ()
    renditions: Sequence[HlsRendition] = ()
    entries: Sequence[PlaylistEntry] = ()
    target: float | None = None
    ended: bool = False
    encrypted: bool = False
    key_frames_only: bool = False


def text_of(body: bytes) -> str:
    """Decode a playlist. Raise `Unreadable`."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("it is not text in UTF-8") from None


def read(text: str, *, most: int, newest: int | None = None) -> HlsPlaylist:
    """Parse a playlist of at most `most` entries or renditions. With `newest`, only so many of the last entries are parsed, and
    older ones are counted. Raise `Unreadable`."""
    return _Reader(most).read(lines_of(text), newest=newest)


def lines_of(text: str) -> list[str]:
    """Return the lines that are not empty, without the first. A line ends with LF or CRLF, never with another character that
    Unicode treats as the end of a line: titles may have them. Raise `Unreadable`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > MOST_LINES:
        raise Unreadable(f"it has more than {MOST_LINES} lines")
    lines = [line for piece in text.split("\n") if (line := piece.strip())]
    if not lines or lines[0] != BEGIN:
        raise Unreadable(f"it does not begin with {BEGIN}")
    return lines[1:]


class _Reader:
    """Reads a playlist line by line."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._variants: list[HlsVariant] = []
        self._renditions: list[HlsRendition] = []
        self._entries: list[PlaylistEntry] = []
        self._target: float | None = None
        self._sequence = self._skipped = self._parsed = 0
        self._master = self._ended = self._encrypted = self._key_frames_only = False
        self._stream: dict[str, str] | None = None
        self._init: InitSection | None = None
        self._keyed = self._mapped = ""
        self._behind: tuple[str, int] | None = None
        """The file and the offset at which the previous part ended: the next one may begin there without stating it."""
        self._begin()

    def _begin(self) -> None:
        self._lasts = UNKNOWN_DURATION
        self._range = ""
        self._breaks = self._absent = False
        self._time: float | None = None

    def read(self, lines: Sequence[str], *, newest: int | None) -> HlsPlaylist:
        older = 0
        if newest is not None:
            older = max(sum(1 for line in lines if line[0] != "#") - newest, 0)
            if older + newest > self._most:
                raise self._too_many()
        for line in lines:
            if line[0] != "#":
                if older:
                    older, self._skipped = older - 1, self._skipped + 1
                else:
                    self._address(line)
            elif line.startswith("#EXT") and not (older and line.startswith(_OF_ENTRY)):
                self._tag(line)
        return HlsPlaylist(
            self._master,
            self._variants,
            self._renditions,
            self._entries,
            self._target,
            self._ended,
            self._encrypted,
            self._key_frames_only,
        )

    def _tag(self, line: str) -> None:
        name, _, value = line.partition(":")
        match name:
            case "#EXTINF":
                lasts = seconds(value.partition(",")[0])
                self._lasts = UNKNOWN_DURATION if lasts is None else lasts
            case "#EXT-X-BYTERANGE":
                self._range = value
            case "#EXT-X-DISCONTINUITY":
                self._breaks = True
            case "#EXT-X-GAP":
                self._absent = True
            case "#EXT-X-PROGRAM-DATE-TIME":
                self._time = time_of_day(value)
            case "#EXT-X-TARGETDURATION":
                self._target = seconds(value)
            case "#EXT-X-MEDIA-SEQUENCE":
                self._sequence = self._number(value)
            case "#EXT-X-ENDLIST":
                self._ended = True
            case "#EXT-X-I-FRAMES-ONLY":
                self._key_frames_only = True
            case "#EXT-X-KEY" if line != self._keyed:
                self._encrypted = self._encrypted or self._attributes(line).get("METHOD") != "NONE"
                self._keyed = line
            case "#EXT-X-MAP" if line != self._mapped:
                self._map(self._attributes(line))
                self._mapped = line
            case "#EXT-X-MEDIA":
                self._rendition(self._attributes(line))
            case "#EXT-X-STREAM-INF":
                self._stream, self._master = self._attributes(line), True
            case "#EXT-X-DEFINE":
                raise Unreadable("it has variables (EXT-X-DEFINE), which are not supported")

    def _address(self, uri: str) -> None:
        within(uri)
        if len(self._entries) + len(self._variants) >= self._most:
            raise self._too_many()
        if self._stream is not None:
            stream, self._stream = self._stream, None
            width, _, height = stream.get("RESOLUTION", "").partition("x")
            size = (whole(width) or 0, whole(height) or 0)
            rate = whole(stream.get("BANDWIDTH", "")) or 0
            self._variants.append(HlsVariant(uri, rate, *size, stream.get("CODECS", ""), stream.get("AUDIO", "")))
            return
        part = self._part(uri) if self._range else None
        number = self._sequence + self._skipped + len(self._entries)
        self._entries.append(PlaylistEntry(number, uri, self._lasts, part, self._init, self._breaks, self._absent, self._time))
        self._begin()

    def _part(self, uri: str) -> ResourceRange:
        match = _RANGE.fullmatch(self._range.strip())
        if match is None:
            raise Unreadable("a byte range in it cannot be read")
        behind = self._behind[1] if self._behind is not None and self._behind[0] == uri else None
        begins = int(match[2]) if match[2] else behind
        if begins is None:
            raise Unreadable("a byte range in it does not say where it begins")
        self._behind = uri, begins + int(match[1])
        return ResourceRange(begins, int(match[1]))

    def _map(self, given: dict[str, str]) -> None:
        if not given.get("URI"):
            raise Unreadable("it names no file for its initialization section (EXT-X-MAP)")
        match = _RANGE.fullmatch(given.get("BYTERANGE", "").strip())
        if match is None and "BYTERANGE" in given:
            raise Unreadable("a byte range in it cannot be read")
        self._init = InitSection(given["URI"], ResourceRange(int(match[2] or 0), int(match[1])) if match is not None else None)

    def _rendition(self, given: dict[str, str]) -> None:
        if len(self._renditions) >= self._most:
            raise self._too_many()
        self._renditions.append(
            HlsRendition(
                type=given.get("TYPE", ""),
                group=given.get("GROUP-ID", ""),
                name=given.get("NAME", ""),
                language=given.get("LANGUAGE", ""),
                uri=given.get("URI", ""),
                default=given.get("DEFAULT") == "YES",
                forced=given.get("FORCED") == "YES",
                characteristics=given.get("CHARACTERISTICS", ""),
            )
        )

    def _attributes(self, line: str) -> dict[str, str]:
        self._parsed += len(line)
        if self._parsed > _MOST_ATTRIBUTES:
            raise Unreadable(f"it has more than {_MOST_ATTRIBUTES} characters of attributes")
        return attributes(line)

    def _number(self, text: str) -> int:
        number = whole(text)
        if number is None:
            raise Unreadable("a number in it cannot be read")
        return number

    def _too_many(self) -> Unreadable:
        return Unreadable(f"it has more than {self._most} entries")


def attributes(line: str) -> dict[str, str]:
    """Parse the attributes of a tag, without quotes. Anything else is skipped up to the next comma. Raise `Unreadable`."""
    text = within(line).partition(":")[2]
    values: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _ATTRIBUTE.match(text, at)
        if match is not None:
            values[match[1]] = match[2] if match[2] is not None else match[3]
        after = match.end() if match is not None else text.find(",", at) + 1
        at = after if after > at else len(text)
    return values


def within(line: str) -> str:
    """Return the line. Raise `Unreadable` if it is too long."""
    if len(line) > LONGEST_LINE:
        raise Unreadable(f"a line of it is longer than {LONGEST_LINE} characters")
    return line


def whole(text: str) -> int | None:
    """Parse a number without a sign, of 18 digits at most. Return None for other text."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def seconds(text: str) -> float | None:
    """Parse a number of seconds. Return None for other text."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else None


def time_of_day(text: str) -> float | None:
    """Parse a time as seconds since 1970. Return None if it cannot be read, or is not between 1970 and 3000."""
    moment = moment_of(text)
    time = -1.0 if moment is None else moment.timestamp()
    return time if 0 <= time < _LATEST else None


def date_time(moment: float) -> str:
    """Format seconds since 1970 as EXT-X-PROGRAM-DATE-TIME does."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
