"""Follows the subtitles of a stream during its recording: HLS renditions and DASH adaptation sets of text.

They are taken from the first source that has any. Their faults are logged, and never fail the capture.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from domain.kernel.clock import system_clock
from workers.job.context import StepFailed
from workers.job.workflows.capture import dash, hls
from workers.job.workflows.capture.downloads import Downloads, PlaylistText
from workers.job.workflows.capture.hls_track import HlsTrack
from workers.job.workflows.capture.parameters import CaptureRequest
from workers.job.workflows.capture.segments import MediaResource, SourceFault

MOST_TRACKS: Final = 16
_MOST_PARTS: Final = 20_000
_MOST_BYTES: Final = 32 * 1024 * 1024
_LARGEST: Final = 5 * 1024 * 1024
_TRIES: Final = 3
_LOOK: Final = 0.2
_LONGEST_WAIT: Final = 10.0
_AROUND: Final = 30.0
"""Seconds around the capture whose segments are taken: times of playlists are not exact."""
_PATIENCE: Final = 60.0
"""Seconds after the end of the recording in which the last texts may still come."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A file, or a segment, of the track with this number.

    `at` is when it begins in the times of the recording, if that is known. Its cues count from `base`, in those times; None if they
    are on the time line of the media. `init` is a digest of its initialization section, empty for WebVTT files.
    """

    track: int
    at: float | None
    base: float | None
    init: str
    body: bytes


@dataclass
class RecordedTexts:
    """The texts of a recording. Each of the `tracks` has a language, a kind and a name."""

    tracks: list[dict[str, str]] = field(default_factory=list)
    parts: list[TextPart] = field(default_factory=list)
    inits: dict[str, bytes] = field(default_factory=dict)

    def members(self) -> dict[str, Any]:
        """Return the members of the JSON object that a recording keeps."""
        return {
            "tracks": self.tracks,
            "inits": {digest: b64encode(body).decode() for digest, body in self.inits.items()},
            "parts": [[part.track, part.at, part.base, part.init, b64encode(part.body).decode()] for part in self.parts],
        }


class TextFollower:
    """Follows the text tracks of the sources. `log` is called with a line for each track that is incomplete."""

    def __init__(self, downloads: Downloads, request: CaptureRequest, *, log: Callable[[str], None]) -> None:
        self._downloads = downloads
        self._downloads.remembered = frozenset(request.sources)
        self._request = request
        self._log = log
        self._over = asyncio.Event()
        self._size = 0
        self._without_texts: dict[str, PlaylistText] = {}
        self.texts = RecordedTexts()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the texts while the context is open, and a little longer, until those that were listed by then have come."""
        task = asyncio.create_task(self._follow())
        try:
            yield
            self._over.set()
            done, _ = await asyncio.wait([task], timeout=_PATIENCE)
            if not done:
                self._log("The subtitles of the stream did not arrive in time; those that arrived are used.")
            elif (fault := task.exception()) is not None:
                self._log(f"The subtitles of the stream are incomplete: {fault}")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self) -> None:
        """Follow the first source with texts. The recorder loads the playlists of the sources anyway; no source is asked twice for
        them."""
        while not await self._follow_any() and not self._over.is_set():
            await self._wait(_LOOK)

    async def _follow_any(self) -> bool:
        for url in self._request.sources:
            text = self._downloads.latest.get(url)
            if text is None or self._without_texts.get(url) is text:
                continue
            self._without_texts[url] = text
            try:
                is_dash = text.body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
                if await (self._dash(url) if is_dash else self._hls(text)):
                    return True
            except (SourceFault, StepFailed):
                continue  # the recorder reports its faults
        return False

    # --- HLS

    async def _hls(self, text: PlaylistText) -> bool:
        listed = hls.subtitles(text.body, text.url)[:MOST_TRACKS]
        for entry in listed:
            self.texts.tracks.append({"language": entry.language, "kind": entry.kind, "name": entry.name})
        await asyncio.gather(*(self._follow_rendition(number, entry) for number, entry in enumerate(listed)))
        return bool(listed)

    async def _follow_rendition(self, number: int, rendition: hls.Subtitles) -> None:
        track, done, failures, missing = HlsTrack(number, "main"), set[str](), 0, 0
        while True:
            last, target, ended = self._over.is_set(), 2.0, False
            try:
                playlist = await self._media(rendition.url)
                failures, target, ended = 0, playlist.target, playlist.ended
                track.update(playlist)
                missing += await self._take_segments(number, track, done, complete=ended)
            except SourceFault as fault:
                failures += 1
                if fault.final or failures >= _TRIES or last:
                    self._log(f"The subtitles {rendition.name or rendition.language} of the stream are not followed: {fault}")
                    break
            if ended or last:
                break
            await self._wait(target / 2)
        if missing:
            self._log(f"{missing} segments of the subtitles {rendition.name or rendition.language} are missing.")

    async def _media(self, url: str) -> hls.CapturedPlaylist:
        text = await self._downloads.text(url)
        texts = hls.parse(text.body, text.url)
        if isinstance(texts, tuple):
            raise SourceFault("It is a master playlist.", final=True)
        return texts

    async def _take_segments(self, number: int, track: HlsTrack, done: set[str], *, complete: bool) -> int:
        """Take the new segments, and return how many of them cannot be fetched."""
        missing = 0
        base = track.segments[0].at if complete and track.segments else None
        for segment in track.segments:
            if segment.name in done:
                continue
            done.add(segment.name)
            comparable = track.clocked == self._request.absolute
            if comparable and not (self._request.start - _AROUND <= segment.end and segment.at <= self._request.end + _AROUND):
                continue
            got = await self._part(number, segment.resource, segment.init, at=segment.at if comparable else None, base=base)
            missing += not got
        return missing

    # --- DASH

    async def _dash(self, url: str) -> bool:
        done: set[tuple[int, MediaResource]] = set()
        missing = 0
        while True:
            last, text = self._over.is_set(), self._downloads.latest[url]
            mpd = dash.parse(text.body, text.url, now=system_clock().timestamp())
            texts = mpd.texts[:MOST_TRACKS]
            for track in texts[len(self.texts.tracks) :]:
                self.texts.tracks.append({"language": track.language, "kind": track.kind, "name": track.name})
            for number, track in enumerate(texts):
                for segment in track.segments:
                    if (number, segment.resource) in done:
                        continue
                    done.add((number, segment.resource))
                    base = segment.at if segment.init is None else None
                    got = await self._part(number, segment.resource, segment.init, at=segment.at, base=base)
                    missing += not got
            if mpd.ended or last or not texts:
                break
            while self._downloads.latest[url] is text and not self._over.is_set():
                await self._wait(_LOOK)
        if missing:
            self._log(f"{missing} files of the subtitles of the stream are missing.")
        return bool(self.texts.tracks)

    # --- files

    async def _part(
        self, number: int, resource: MediaResource, init: MediaResource | None, *, at: float | None, base: float | None
    ) -> bool:
        if len(self.texts.parts) >= _MOST_PARTS or self._size >= _MOST_BYTES:
            return False
        try:
            if init is not None and init.digest not in self.texts.inits:
                self.texts.inits[init.digest] = await self._piece(init)
            body = await self._piece(resource)
        except SourceFault:
            return False
        digest = "" if init is None else init.digest
        self.texts.parts.append(TextPart(number, at, base, digest, body))
        return True

    async def _piece(self, resource: MediaResource) -> bytes:
        for attempt in range(1, _TRIES + 1):
            try:
                body = await self._downloads.piece(resource, most=_LARGEST)
            except SourceFault as fault:
                if fault.final or attempt == _TRIES:
                    raise
                await self._wait(0.25 * 2**attempt)
            else:
                self._size += len(body)
                return body
        raise AssertionError

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), min(max(seconds, _LOOK), _LONGEST_WAIT))
