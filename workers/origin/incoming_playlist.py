"""HLS playlists as an encoder sends them: RFC 8216. Read strictly: what is not understood is refused, not passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from re import compile as regex
from typing import Final

from workers.media.errors import Unreadable
from workers.media.hls import Entry, Playlist, read, text_of
from workers.origin.limits import MOST_LISTED
from workers.origin.names import relative
from workers.origin.refusals import UploadRefused, Why

_NEWEST: Final = 1_000
"""Entries that are read. Those before were read when they were new: far fewer files are kept that no playlist has listed."""
_LONGEST_NAME: Final = 512
_LONGEST: Final = 120.0
_CODECS: Final = regex(r"[A-Za-z0-9.,+-]{1,200}")
_LARGEST: Final = 99_999
"""Pixels of a side."""
_MOST_RENDITIONS: Final = 64


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
        found = read(text_of(body), most=MOST_LISTED, newest=_NEWEST)
    except Unreadable as fault:
        raise _refused(str(fault)) from None
    if found.master:
        return _master(found, path)
    if found.encrypted:
        raise _refused("its segments are encrypted")
    return Incoming(found.ended, tuple(_listed(one, path) for one in found.entries))


def _master(found: Playlist, path: str) -> Master:
    made: dict[str, Described] = {}
    for sound in found.renditions:
        if sound.type == "AUDIO" and sound.uri:
            tag = sound.language
            safe = tag if len(tag) <= 35 and tag.replace("-", "").isalnum() and tag.isascii() else ""
            made[relative(path, sound.uri).path] = Described(audio=True, language=safe)
    for one in found.variants:
        name = relative(path, one.uri).path
        known = made.get(name)
        made[name] = Described(
            audio=known is not None and known.audio,
            language=known.language if known is not None else "",
            bandwidth=one.bandwidth,
            codecs=one.codecs if _CODECS.fullmatch(one.codecs) else "",
            width=one.width if one.width <= _LARGEST and one.height <= _LARGEST else 0,
            height=one.height if one.width <= _LARGEST and one.height <= _LARGEST else 0,
        )
    if len(made) > _MOST_RENDITIONS:
        raise _refused("it lists too many renditions")
    return Master(made)


def _listed(entry: Entry, path: str) -> Listed:
    if not 0 < entry.lasts <= _LONGEST:
        raise _refused(f"a segment has no duration between 0 and {_LONGEST:g} seconds")
    if len(entry.uri) > _LONGEST_NAME:
        raise _refused("the name of a segment is too long")
    if entry.part is not None:
        raise _refused("its segments are parts of files; send each as a file of its own")
    init = None if entry.init is None else relative(path, entry.init.uri).path
    return Listed(entry.sequence, relative(path, entry.uri).path, entry.lasts, init, entry.time, entry.breaks)


def _refused(what: str) -> UploadRefused:
    return UploadRefused(Why.MALFORMED, f"The playlist cannot be taken: {what}.")
