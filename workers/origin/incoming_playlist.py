"""HLS playlists as encoders send them: RFC 8216. They are read strictly: anything unsupported is refused, not passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from re import compile as regex
from typing import Final

from workers.media.errors import Unreadable
from workers.media.hls import HlsPlaylist, PlaylistEntry, read, text_of
from workers.origin.limits import MOST_LISTED, RefusalReason, UploadRefused
from workers.origin.names import relative

_NEWEST: Final = 1_000
"""The number of entries that are read. Earlier entries were read when they were new: far fewer files that no playlist has listed
are stored."""
_LONGEST_NAME: Final = 512
_LONGEST: Final = 120.0
_CODECS: Final = regex(r"[A-Za-z0-9.,+-]{1,200}")
_LARGEST: Final = 99_999
"""The largest width or height in pixels."""
_MOST_RENDITIONS: Final = 64


@dataclass(frozen=True, slots=True)
class ListedSegment:
    """A segment of a media playlist. `path` and `init` are the names under which its files were sent. `at` is a Unix time."""

    sequence: int
    path: str
    lasts: float
    init: str | None
    at: float | None
    breaks: bool


@dataclass(frozen=True, slots=True)
class IncomingPlaylist:
    """A media playlist."""

    ended: bool
    segments: tuple[ListedSegment, ...]

    def later_than(self, other: IncomingPlaylist) -> bool:
        """Return True if the encoder made this playlist after the other one."""
        return self._reach > other._reach

    @property
    def _reach(self) -> tuple[int, bool]:
        return (self.segments[-1].sequence if self.segments else -1, self.ended)


@dataclass(frozen=True, slots=True)
class TrackDescription:
    """The attributes of a media playlist in a master playlist. All of them are validated: nothing else of the master playlist is
    stored."""

    bandwidth: int = 0
    codecs: str = ""
    width: int = 0
    height: int = 0
    audio: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True)
class MasterPlaylist:
    """A master playlist: the descriptions of media playlists by path."""

    tracks: Mapping[str, TrackDescription] = field(default_factory=dict)


def read_playlist(body: bytes, path: str) -> IncomingPlaylist | MasterPlaylist:
    """Parse a playlist. Raise `UploadRefused`."""
    try:
        playlist = read(text_of(body), most=MOST_LISTED, newest=_NEWEST)
    except Unreadable as fault:
        raise _refusal(str(fault)) from None
    if playlist.master:
        return _master(playlist, path)
    if playlist.encrypted:
        raise _refusal("its segments are encrypted")
    return IncomingPlaylist(playlist.ended, tuple(_read_segment(entry, path) for entry in playlist.entries))


def _master(playlist: HlsPlaylist, path: str) -> MasterPlaylist:
    made: dict[str, TrackDescription] = {}
    for sound in playlist.renditions:
        if sound.type == "AUDIO" and sound.uri:
            tag = sound.language
            safe = tag if len(tag) <= 35 and tag.replace("-", "").isalnum() and tag.isascii() else ""
            made[relative(path, sound.uri).path] = TrackDescription(audio=True, language=safe)
    for variant in playlist.variants:
        name = relative(path, variant.uri).path
        described = made.get(name)
        made[name] = TrackDescription(
            audio=described is not None and described.audio,
            language=described.language if described is not None else "",
            bandwidth=variant.bandwidth,
            codecs=variant.codecs if _CODECS.fullmatch(variant.codecs) else "",
            width=variant.width if variant.width <= _LARGEST and variant.height <= _LARGEST else 0,
            height=variant.height if variant.width <= _LARGEST and variant.height <= _LARGEST else 0,
        )
    if len(made) > _MOST_RENDITIONS:
        raise _refusal("it lists too many renditions")
    return MasterPlaylist(made)


def _read_segment(entry: PlaylistEntry, path: str) -> ListedSegment:
    if not 0 < entry.lasts <= _LONGEST:
        raise _refusal(f"a segment has no duration between 0 and {_LONGEST:g} seconds")
    if len(entry.uri) > _LONGEST_NAME:
        raise _refusal("the name of a segment is too long")
    if entry.part is not None:
        raise _refusal("its segments are parts of files; send each as a separate file")
    init = None if entry.init is None else relative(path, entry.init.uri).path
    return ListedSegment(entry.sequence, relative(path, entry.uri).path, entry.lasts, init, entry.time, entry.breaks)


def _refusal(what: str) -> UploadRefused:
    return UploadRefused(RefusalReason.MALFORMED, f"The playlist is not accepted: {what}.")
