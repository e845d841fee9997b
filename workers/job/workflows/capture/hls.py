"""HLS playlists of a source that is captured. Features of a playlist that would make a capture wrong are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.job.workflows.capture.segments import LONGEST, MOST_ENTRIES, MediaResource, SourceFault, absolute_url
from workers.media.errors import Unreadable
from workers.media.hls import UNKNOWN_DURATION, HlsPlaylist, HlsRendition, PlaylistEntry, read, text_of


@dataclass(frozen=True, slots=True)
class CapturedVariant:
    """A rendition of a master playlist. `audio` is the URL of the playlist of its audio if that is separate."""

    url: str
    bandwidth: int
    pixels: int
    audio: str | None


@dataclass(frozen=True, slots=True)
class Subtitles:
    """A rendition of text: `language` as the playlist states it, `kind` as one of the product's kinds of captions."""

    url: str
    language: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class CapturedPlaylist:
    """A media playlist.

    No segment is longer than `target`, in rounded seconds. `ended` means that it does not change any more. The addresses of entries
    are relative to it: most of them are known already, and are not parsed again.
    """

    url: str
    target: float
    ended: bool
    entries: Sequence[PlaylistEntry]

    def resource(self, entry: PlaylistEntry) -> MediaResource:
        return MediaResource(absolute_url(self.url, entry.uri), entry.part)

    def init(self, entry: PlaylistEntry) -> MediaResource | None:
        return None if entry.init is None else MediaResource(absolute_url(self.url, entry.init.uri), entry.init.part)


def parse(body: bytes, url: str) -> CapturedPlaylist | tuple[CapturedVariant, ...]:
    """Return a media playlist, or the variants of a master playlist, the highest first. Raises `SourceFault`."""
    playlist = _read(body)
    if playlist.master:
        return _variants(playlist, url)
    if playlist.encrypted:
        raise SourceFault("The segments are encrypted (EXT-X-KEY); only a clear stream is captured.", final=True)
    if playlist.key_frames_only:
        raise SourceFault("The playlist has key frames only.", final=True)
    if any(entry.lasts == UNKNOWN_DURATION for entry in playlist.entries):
        raise SourceFault("A segment of the playlist has no duration (EXTINF), or one that is not a number of seconds.", final=True)
    longest = max((entry.lasts for entry in playlist.entries), default=0.0)
    if max(longest, playlist.target or 0.0) > LONGEST:
        raise SourceFault(f"A duration of the playlist is more than {LONGEST:g} seconds.", final=True)
    target = playlist.target or longest
    if not target:
        raise SourceFault("The playlist has neither a target duration nor a segment.")
    return CapturedPlaylist(url, target, playlist.ended, playlist.entries)


def subtitles(body: bytes, url: str) -> list[Subtitles]:
    """Return the text renditions of a master playlist, each address once; other playlists have none. Raises `SourceFault`."""
    by_address: dict[str, Subtitles] = {}
    for rendition in _read(body).renditions:
        if rendition.type == "SUBTITLES" and rendition.uri:
            address = absolute_url(url, rendition.uri)
            by_address.setdefault(address, Subtitles(address, rendition.language, _kind(rendition), rendition.name))
    return list(by_address.values())


def _read(body: bytes) -> HlsPlaylist:
    try:
        return read(text_of(body), most=MOST_ENTRIES)
    except Unreadable as fault:
        raise SourceFault(f"The playlist cannot be read: {fault}.", final=True) from None


def _kind(text: HlsRendition) -> str:
    if text.forced:
        return "forced"
    if "describes-video" in text.characteristics:
        return "descriptions"
    return "captions" if "transcribes" in text.characteristics else "subtitles"


def _variants(playlist: HlsPlaylist, url: str) -> tuple[CapturedVariant, ...]:
    if not playlist.variants:
        raise SourceFault("The master playlist lists no rendition.", final=True)
    audio = _audio(playlist.renditions, url)
    made = [
        CapturedVariant(absolute_url(url, variant.uri), variant.bandwidth, variant.width * variant.height, audio.get(variant.audio))
        for variant in playlist.variants
    ]
    return tuple(sorted(made, key=lambda variant: (variant.pixels, variant.bandwidth), reverse=True))


def _audio(renditions: Sequence[HlsRendition], url: str) -> dict[str, str]:
    """Return the playlist of each group's audio: the default one, else the first. Other audio is within the video's segments."""
    chosen: dict[str, HlsRendition] = {}
    for rendition in renditions:
        if rendition.type == "AUDIO" and (
            rendition.group not in chosen or (rendition.default and not chosen[rendition.group].default)
        ):
            chosen[rendition.group] = rendition
    return {group: absolute_url(url, rendition.uri) for group, rendition in chosen.items() if rendition.uri}
