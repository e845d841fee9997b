"""HLS playlists as an encoder sends them: RFC 8216. Read strictly: what is not understood is refused, not passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from re import compile as regex
from typing import Final

from workers.media.hls_text import LongLine, attributes, time_of_day, whole
from workers.origin.limits import MOST_LISTED
from workers.origin.names import relative
from workers.origin.refusals import UploadRefused, Why

_NEWEST: Final = 1_000
"""Entries that are read. Those before were read when they were new: far fewer files are kept that no playlist has listed."""
_OF_ENTRY: Final = ("#EXTINF:", "#EXT-X-PROGRAM-DATE-TIME:", "#EXT-X-DISCONTINUITY")
"""Tags of one entry. Where that is left out they are, too."""
_PARSED: Final = ("#EXT-X-MAP:", "#EXT-X-KEY:")
_MOST_PARSED: Final = 256 * 1024
"""Bytes of a master playlist, and of all tags with attributes of another one: they take far longer to read than entries do."""
_MOST_LINES: Final = 5 * MOST_LISTED
_LONGEST_NAME: Final = 512
_LONGEST: Final = 120.0
_SECONDS: Final = regex(r"[0-9]{1,4}(?:\.[0-9]{1,12})?")
_CODECS: Final = regex(r"[A-Za-z0-9.,+-]{1,200}")
_RESOLUTION: Final = regex(r"([0-9]{1,5})x([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Listed:
    """A segment of a media playlist. `path` and `init` are what was sent under these names. `at` is a Unix time."""

    sequence: int
    path: str
    lasts: float
    init: str | None
    at: float | None
    breaks: bool


@dataclass(frozen=True, slots=True)
class Incoming:
    """A media playlist."""

    ended: bool
    segments: tuple[Listed, ...]

    def later_than(self, other: Incoming) -> bool:
        """Whether it was made after another one of its encoder."""
        return self._reach > other._reach

    @property
    def _reach(self) -> tuple[int, bool]:
        return (self.segments[-1].sequence if self.segments else -1, self.ended)


@dataclass(frozen=True, slots=True)
class Described:
    """What a master playlist says of a media playlist, by its path. Members are as safe as numbers: nothing else is kept."""

    bandwidth: int = 0
    codecs: str = ""
    width: int = 0
    height: int = 0
    audio: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True)
class Master:
    tracks: Mapping[str, Described] = field(default_factory=dict)


def read_playlist(body: bytes, path: str) -> Incoming | Master:
    """Raises `UploadRefused`."""
    try:
        lines = body.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise _refused("it is not text in UTF-8") from None
    if len(lines) > _MOST_LINES:
        raise _refused(f"it has more than {_MOST_LINES} lines")
    lines = [line.strip() for line in lines]
    if not lines or lines[0] != "#EXTM3U":
        raise _refused("it does not begin with #EXTM3U")
    master = any(line.startswith("#EXT-X-STREAM-INF:") for line in lines)
    if len(body) > _MOST_PARSED and (master or sum(len(line) for line in lines if line.startswith(_PARSED)) > _MOST_PARSED):
        raise _refused(f"it has more than {_MOST_PARSED} bytes that are not of entries")
    if master:
        return _master(lines, path)
    return _Media(path).read(lines)


def _master(lines: list[str], path: str) -> Master:
    found: dict[str, Described] = {}
    stream: dict[str, str] | None = None
    for line in lines:
        if line.startswith("#EXT-X-STREAM-INF:"):
            stream = _attributes(line)
        elif line.startswith("#EXT-X-MEDIA:"):
            media = _attributes(line)
            if media.get("TYPE") == "AUDIO" and media.get("URI"):
                language = media.get("LANGUAGE", "")
                safe = language if len(language) <= 35 and language.replace("-", "").isalnum() and language.isascii() else ""
                found[relative(path, media["URI"]).path] = Described(audio=True, language=safe)
        elif line and not line.startswith("#") and stream is not None:
            size = _RESOLUTION.fullmatch(stream.get("RESOLUTION", ""))
            codecs = stream.get("CODECS", "")
            known = found.get(relative(path, line).path)
            found[relative(path, line).path] = Described(
                audio=known is not None and known.audio,
                language=known.language if known is not None else "",
                bandwidth=whole(stream.get("BANDWIDTH", "")) or 0,
                codecs=codecs if _CODECS.fullmatch(codecs) else "",
                width=int(size[1]) if size else 0,
                height=int(size[2]) if size else 0,
            )
            stream = None
        if len(found) > 64:
            raise _refused("it lists too many renditions")
    return Master(found)


class _Media:
    def __init__(self, path: str) -> None:
        self._path = path
        self._sequence = 0
        self._ended = False
        self._init: str | None = None
        self._segments: list[Listed] = []
        self._older = 0
        """Entries before the newest ones."""
        self._begin()

    def _begin(self) -> None:
        self._lasts: float | None = None
        self._breaks = False
        self._at: float | None = None

    def read(self, lines: list[str]) -> Incoming:
        listed = sum(1 for line in lines if line and line[0] != "#")
        if listed > MOST_LISTED:
            raise _refused(f"it lists more than {MOST_LISTED} segments")
        self._older = older = max(listed - _NEWEST, 0)
        for line in lines[1:]:
            if older and line and (line[0] != "#" or line.startswith(_OF_ENTRY)):
                older -= line[0] != "#"
            elif line.startswith("#EXT"):
                self._tag(*_split(line))
            elif line and not line.startswith("#"):
                self._entry(line)
        return Incoming(self._ended, tuple(self._segments))

    def _tag(self, name: str, value: str) -> None:
        match name:
            case "#EXTINF":
                self._lasts = _seconds(value.partition(",")[0])
            case "#EXT-X-MEDIA-SEQUENCE":
                self._sequence = whole(value) or 0
            case "#EXT-X-ENDLIST":
                self._ended = True
            case "#EXT-X-DISCONTINUITY":
                self._breaks = True
            case "#EXT-X-PROGRAM-DATE-TIME":
                self._at = time_of_day(value)
            case "#EXT-X-MAP":
                self._init = relative(self._path, _attributes(f":{value}").get("URI", "")).path
            case "#EXT-X-BYTERANGE":
                raise _refused("its segments are parts of files; send each as a file of its own")
            case "#EXT-X-KEY":
                if _attributes(f":{value}").get("METHOD") != "NONE":
                    raise _refused("its segments are encrypted")

    def _entry(self, uri: str) -> None:
        if self._lasts is None:
            raise _refused("a segment has no duration")
        if len(uri) > _LONGEST_NAME:
            raise _refused("the name of a segment is too long")
        number = self._sequence + self._older + len(self._segments)
        self._segments.append(Listed(number, relative(self._path, uri).path, self._lasts, self._init, self._at, self._breaks))
        self._begin()


def _split(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value


def _attributes(line: str) -> dict[str, str]:
    try:
        return attributes(line)
    except LongLine as fault:
        raise _refused(str(fault)) from None


def _seconds(text: str) -> float:
    found = float(text) if _SECONDS.fullmatch(text.strip()) else -1.0
    if not 0 < found <= _LONGEST:
        raise _refused(f"a duration is not between 0 and {_LONGEST:g} seconds")
    return found


def _refused(what: str) -> UploadRefused:
    return UploadRefused(Why.MALFORMED, f"The playlist cannot be taken: {what}.")
