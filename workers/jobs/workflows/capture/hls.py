"""HLS playlists of a source that is captured. Of what a playlist may say, what would make a capture wrong is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.jobs.workflows.capture.segments import LONGEST, MOST_ENTRIES, Resource, SourceFault, joined
from workers.media.errors import Unreadable
from workers.media.hls import UNKNOWN_DURATION, Entry, Playlist, Rendition, read, text_of


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
class MediaPlaylist:
    """`target`: no segment is longer, in seconds, rounded. `ended`: it does not change any more. The addresses of entries are
    relative to it: most of them are known already, and are not looked at again."""

    url: str
    target: float
    ended: bool
    entries: Sequence[Entry]

    def resource(self, entry: Entry) -> Resource:
        return Resource(joined(self.url, entry.uri), entry.part)

    def init(self, entry: Entry) -> Resource | None:
        return None if entry.init is None else Resource(joined(self.url, entry.init.uri), entry.init.part)


def parse(body: bytes, url: str) -> MediaPlaylist | tuple[Variant, ...]:
    """A media playlist, or the variants of a master playlist, the highest first. Raises `SourceFault`."""
    found = _read(body)
    if found.master:
        return _variants(found, url)
    if found.encrypted:
        raise SourceFault("The segments are encrypted (EXT-X-KEY); only a clear stream is captured.", final=True)
    if found.key_frames_only:
        raise SourceFault("The playlist has key frames only.", final=True)
    if any(one.lasts == UNKNOWN_DURATION for one in found.entries):
        raise SourceFault("A segment of the playlist has no duration (EXTINF), or one that is no number of seconds.", final=True)
    longest = max((one.lasts for one in found.entries), default=0.0)
    if max(longest, found.target or 0.0) > LONGEST:
        raise SourceFault(f"A duration of the playlist is more than {LONGEST:g} seconds.", final=True)
    target = found.target or longest
    if not target:
        raise SourceFault("The playlist has neither a target duration nor a segment.")
    return MediaPlaylist(url, target, found.ended, found.entries)


def subtitles(body: bytes, url: str) -> list[Subtitles]:
    """The text of a master playlist, each address once. Of another playlist there is none. Raises `SourceFault`."""
    found: dict[str, Subtitles] = {}
    for one in _read(body).renditions:
        if one.type == "SUBTITLES" and one.uri:
            address = joined(url, one.uri)
            found.setdefault(address, Subtitles(address, one.language, _kind(one), one.name))
    return list(found.values())


def _read(body: bytes) -> Playlist:
    try:
        return read(text_of(body), most=MOST_ENTRIES)
    except Unreadable as fault:
        raise SourceFault(f"The playlist cannot be read: {fault}.", final=True) from None


def _kind(text: Rendition) -> str:
    if text.forced:
        return "forced"
    if "describes-video" in text.characteristics:
        return "descriptions"
    return "captions" if "transcribes" in text.characteristics else "subtitles"


def _variants(found: Playlist, url: str) -> tuple[Variant, ...]:
    if not found.variants:
        raise SourceFault("The master playlist lists no rendition.", final=True)
    audio = _audio(found.renditions, url)
    made = [Variant(joined(url, one.uri), one.bandwidth, one.width * one.height, audio.get(one.audio)) for one in found.variants]
    return tuple(sorted(made, key=lambda one: (one.pixels, one.bandwidth), reverse=True))


def _audio(renditions: Sequence[Rendition], url: str) -> dict[str, str]:
    """The playlist of each group's audio: the default one, else the first. Audio without one is within the video's segments."""
    found: dict[str, Rendition] = {}
    for one in renditions:
        if one.type == "AUDIO" and (one.group not in found or (one.default and not found[one.group].default)):
            found[one.group] = one
    return {group: joined(url, one.uri) for group, one in found.items() if one.uri}
