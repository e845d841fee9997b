"""The stream of one source: its playlists or its manifest, loaded again as long as it is live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final, Protocol

from workers.job.workflows.capture import dash, hls
from workers.job.workflows.capture.containers import subsegments
from workers.job.workflows.capture.dash import DashTrack
from workers.job.workflows.capture.downloads import Downloads, PlaylistText
from workers.job.workflows.capture.hls_track import ClockJump, HlsTrack
from workers.job.workflows.capture.segments import CapturedSegment, Kind, SourceFault
from workers.media.dash import DashSegment

_KINDS: Final[tuple[Kind, ...]] = ("main", "audio")
PATIENCE: Final = 2.0
"""Target durations without a new segment after which a source counts as stalled."""
SHORTEST_WAIT: Final = 0.2
_A_YEAR: Final = 365 * 86400.0
"""A time that no stream reaches that counts from its start instead of telling the time of day."""


class CapturedStream(Protocol):
    """A stream. `target` is the largest duration of its segments; `ended` is True if no more segments can come."""

    target: float
    ended: bool

    @property
    def clocked(self) -> bool: ...

    @property
    def tracks(self) -> Mapping[Kind, list[CapturedSegment]]: ...

    async def refresh(self) -> bool:
        """Load it again, and return True if there is anything new. Raises `SourceFault`."""
        ...

    def take_jumps(self) -> Sequence[ClockJump]:
        """Return the jumps of its clock that were found since the last call."""
        ...

    def wait(self, changed: bool) -> float:
        """Return the seconds until it should be loaded again."""
        ...


async def open_stream(
    number: int, url: str, *, downloads: Downloads, earlier: list[CapturedSegment], clock: Callable[[], float]
) -> CapturedStream:
    """Open the stream at a URL. `earlier` are segments that an earlier run had. Raises `SourceFault`."""
    text = await downloads.text(url)
    if text.body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return DashStream(number, url, text, downloads=downloads, earlier=earlier, clock=clock)
    return HlsStream(number, url, text, downloads=downloads, earlier=earlier)


class HlsStream:
    """The highest rendition of a master playlist with its audio, or a media playlist.

    The master playlist is loaded again if its rendition fails, stalls or ends: its encoder may have restarted with other
    renditions, or their addresses may be valid only for a while.
    """

    def __init__(self, number: int, url: str, text: PlaylistText, *, downloads: Downloads, earlier: list[CapturedSegment]) -> None:
        self._downloads = downloads
        self._url = url
        self.target = 0.0
        self.ended = False
        self._news = monotonic()
        playlist = hls.parse(text.body, text.url)
        self._variant = playlist[0] if isinstance(playlist, tuple) else None
        self._first = None if isinstance(playlist, tuple) else playlist
        self._urls: dict[Kind, str] = {"main": text.url} if self._variant is None else _urls(self._variant)
        self._tracks: dict[Kind, HlsTrack] = {kind: HlsTrack(number, kind) for kind in self._urls}
        for kind, track in self._tracks.items():
            restored = [segment for segment in earlier if segment.kind == kind]
            track.restore(restored, clocked=any(segment.at > _A_YEAR for segment in restored))

    @property
    def clocked(self) -> bool:
        return all(track.clocked for track in self._tracks.values())

    @property
    def tracks(self) -> Mapping[Kind, list[CapturedSegment]]:
        return {kind: track.segments for kind, track in self._tracks.items()}

    def align(self, to: CapturedStream) -> bool:
        """Count time as another stream does whose segments have the same sequence numbers; False if they share no segment."""
        theirs = {(segment.epoch, segment.sequence): segment.at for segment in to.tracks["main"]}
        ours = self._tracks["main"].segments
        apart = next((theirs[key] - segment.at for segment in ours if (key := (segment.epoch, segment.sequence)) in theirs), None)
        if apart is not None:
            for track in self._tracks.values():
                track.shift(apart)
        return apart is not None

    async def refresh(self) -> bool:
        try:
            changed = await self._update_tracks()
        except SourceFault:
            if not await self._has_moved():
                raise
            return await self._update_tracks()
        stalled = not changed and monotonic() - self._news >= PATIENCE * self.target
        if (self.ended or stalled) and await self._has_moved():
            changed = await self._update_tracks() or changed
        return changed

    async def _update_tracks(self) -> bool:
        playlists = await asyncio.gather(*(self._media(url) for url in self._urls.values()))
        changes = [self._tracks[kind].update(playlist) for kind, playlist in zip(self._urls, playlists, strict=True)]
        self.target = max(playlist.target for playlist in playlists)
        self.ended = all(playlist.ended for playlist in playlists)
        if any(changes):
            self._news = monotonic()
        return any(changes)

    async def _has_moved(self) -> bool:
        """Return True if the master playlist lists other addresses by now, which are then used.

        They are those of the rendition with the same size and rate, otherwise those of the highest.
        """
        before = self._variant
        if before is None:
            return False
        try:
            text = await self._downloads.text(self._url)
            variants = hls.parse(text.body, text.url)
        except SourceFault:
            return False
        if not isinstance(variants, tuple):
            return False
        same = (before.pixels, before.bandwidth)
        variant = min(
            variants, key=lambda candidate: (candidate.url != before.url, (candidate.pixels, candidate.bandwidth) != same)
        )
        urls = _urls(variant)
        if urls == self._urls or urls.keys() != self._urls.keys():
            return False
        for kind in urls:
            if urls[kind] != self._urls[kind]:
                self._tracks[kind].move()
        self._variant, self._urls = variant, urls
        return True

    def take_jumps(self) -> Sequence[ClockJump]:
        main = self._tracks["main"]
        taken, main.jumps = main.jumps, []
        return taken

    def wait(self, changed: bool) -> float:
        """Return the seconds of RFC 8216, 6.3.4."""
        return max(self.target if changed else self.target / 2, SHORTEST_WAIT)

    async def _media(self, url: str) -> hls.CapturedPlaylist:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        text = await self._downloads.text(url)
        playlist = hls.parse(text.body, text.url)
        if isinstance(playlist, tuple):
            raise SourceFault("A master playlist lists another master playlist.", final=True)
        return playlist


def _urls(variant: hls.CapturedVariant) -> dict[Kind, str]:
    return {"main": variant.url, **({"audio": variant.audio} if variant.audio else {})}


class DashStream:
    """The highest video of a manifest, and its main audio."""

    def __init__(
        self,
        number: int,
        url: str,
        text: PlaylistText,
        *,
        downloads: Downloads,
        earlier: list[CapturedSegment],
        clock: Callable[[], float],
    ) -> None:
        self._number = number
        self._url = url
        self._first: PlaylistText | None = text
        self._downloads = downloads
        self._clock = clock
        self._earlier = earlier
        self._update = 0.0
        self.target = 0.0
        self.ended = False
        self._tracks: dict[Kind, DashTrack] = {}

    @property
    def clocked(self) -> bool:
        return all(track.clocked for track in self._tracks.values())

    @property
    def tracks(self) -> Mapping[Kind, list[CapturedSegment]]:
        return {kind: track.segments for kind, track in self._tracks.items()}

    async def refresh(self) -> bool:
        text, self._first = self._first or await self._downloads.text(self._url), None
        mpd = dash.parse(text.body, text.url, now=self._clock())
        changed = False
        for kind in _KINDS:
            if kind in mpd.tracks:
                listed = [segment for listed_entry in mpd.tracks[kind] for segment in await self._expand_index(listed_entry)]
                changed = self._track(kind, clocked=mpd.clocked).update(listed, clocked=mpd.clocked) or changed
                self.target = max([self.target, *(listed_entry.lasts for listed_entry in listed)])
        self.ended, self._update = mpd.ended, mpd.update
        return changed

    def take_jumps(self) -> Sequence[ClockJump]:
        """Return none: its times count from one moment that the manifest names."""
        return ()

    def wait(self, changed: bool) -> float:
        return max(min(self._update, self.target or self._update), SHORTEST_WAIT)

    def _track(self, kind: Kind, *, clocked: bool) -> DashTrack:
        if kind not in self._tracks:
            self._tracks[kind] = DashTrack(self._number, kind)
            self._tracks[kind].restore([segment for segment in self._earlier if segment.kind == kind], clocked=clocked)
        return self._tracks[kind]

    async def _expand_index(self, entry: DashSegment) -> list[DashSegment]:
        if entry.index is None or entry.index.part is None:
            return [entry]
        data = await self._downloads.piece(entry.index)
        url = entry.resource.url
        return [
            DashSegment(entry.epoch, type(entry.resource)(url, part), entry.at + time, lasts, entry.init)
            for part, time, lasts in subsegments(data, begins=entry.index.part.first)
        ]
