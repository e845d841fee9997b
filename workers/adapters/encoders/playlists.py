"""HLS playlists that are sent to a publishing point (RFC 8216)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.channel.encoder_settings import LONGEST_DVR
from workers.adapters.encoders.tracks import Segment, Track
from workers.media.hls import date_time
from workers.origin.limits import MOST_LISTED

AUDIO: Final = "audio"
_DISCONTINUITIES: Final = 10_000
"""A number above the discontinuities of any session, so that the next session's numbers are higher."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A segment without its media. `text` contains its lines in the playlist."""

    number: int
    duration: float
    uri: str
    gap: bool
    text: str


class MediaPlaylist:
    """The playlist of one track at one point. It lists what the point has, as far as the window reaches back, at most `LONGEST_DVR`
    seconds and `MOST_LISTED` entries."""

    def __init__(self, track: str, *, session: int, segment: float, window: float) -> None:
        self.name = f"{track}.m3u8"
        self.header = f"{track}-{session}.mp4"
        self._stem = f"{track}-{session}"
        self._target = math.ceil(segment)
        self._window = max(min(window, LONGEST_DVR), 3 * segment)
        self._entries: deque[_Entry] = deque()
        self._length = 0.0
        self._sequence: int | None = None
        self._discontinuities = session * _DISCONTINUITIES
        self.ended = False

    @property
    def begun(self) -> bool:
        """True if a segment was ever added."""
        return self._sequence is not None

    def uri(self, segment: Segment) -> str:
        return f"{self._stem}-{segment.number}.m4s"

    def add(self, segment: Segment) -> Sequence[str]:
        """Add a segment and return the URIs that are no longer listed."""
        before = self._entries[-1].number if self._entries else segment.number - 1
        first = self._sequence is None
        if self._sequence is None:
            self._sequence = segment.number
        self._append(segment, gap=first or segment.number != before + 1)
        gone = []
        while self._length - self._entries[0].duration >= self._window or len(self._entries) > MOST_LISTED:
            entry = self._entries.popleft()
            self._length = self._length - entry.duration if self._entries else 0.0
            self._sequence += 1
            self._discontinuities += entry.gap
            gone.append(entry.uri)
        return gone

    def text(self) -> bytes:
        lines = ["#EXTM3U", "#EXT-X-VERSION:7"]
        lines += [f"#EXT-X-TARGETDURATION:{self._target}", f"#EXT-X-MEDIA-SEQUENCE:{self._sequence or 0}"]
        lines += [f"#EXT-X-DISCONTINUITY-SEQUENCE:{self._discontinuities}", "#EXT-X-INDEPENDENT-SEGMENTS"]
        lines += [f'#EXT-X-MAP:URI="{self.header}"']
        lines += [entry.text for entry in self._entries]
        lines += ["#EXT-X-ENDLIST"] if self.ended else []
        return "\n".join([*lines, ""]).encode()

    def _append(self, segment: Segment, *, gap: bool) -> None:
        uri = self.uri(segment)
        lines = ["#EXT-X-DISCONTINUITY"] if gap else []
        lines += [f"#EXT-X-PROGRAM-DATE-TIME:{date_time(segment.start)}", f"#EXTINF:{segment.duration:.5f},", uri]
        self._entries.append(_Entry(segment.number, segment.duration, uri, gap, "\n".join(lines)))
        self._length += segment.duration


def master(tracks: Sequence[Track]) -> bytes:
    """Return the multivariant playlist: every rendition with every sound."""
    sounds = [track for track in tracks if not track.plan.video]
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    lines += [_sound(track, default=place == 0) for place, track in enumerate(sounds)]
    loudest = max((track.plan.bitrate for track in sounds), default=0)
    codecs = [*dict.fromkeys(track.header.codec for track in sounds)]
    for track in tracks:
        if track.plan.video:
            rate = round((track.plan.bitrate + loudest) * 1.2)
            attributes = [f"BANDWIDTH={rate}", f"AVERAGE-BANDWIDTH={track.plan.bitrate + loudest}"]
            attributes += [
                f'CODECS="{",".join([track.header.codec, *codecs])}"',
                f"RESOLUTION={track.header.width}x{track.header.height}",
            ]
            attributes += [f"FRAME-RATE={track.plan.fps:.3f}"] if track.plan.fps else []
            attributes += [f'AUDIO="{AUDIO}"'] if sounds else []
            lines += [f"#EXT-X-STREAM-INF:{','.join(attributes)}", f"{track.name}.m3u8"]
    return "\n".join([*lines, ""]).encode()


def _sound(track: Track, *, default: bool) -> str:
    audio = track.plan.audio
    assert audio is not None
    name = _quoted(audio.name or audio.id) or track.name
    language = f',LANGUAGE="{_quoted(audio.language)}"' if audio.language else ""
    chosen = "DEFAULT=YES,AUTOSELECT=YES" if default else "DEFAULT=NO,AUTOSELECT=YES"
    return f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{AUDIO}",NAME="{name}"{language},{chosen},URI="{track.name}.m3u8"'


def _quoted(text: str) -> str:
    """Return the text for use between quotation marks: without such marks, on one line, at most 80 characters."""
    return "".join(character for character in text if character.isprintable() and character != '"')[:80]
