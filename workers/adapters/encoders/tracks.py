"""Tracks of an encode: the incoming fragments, and the segments made of them, on the time line of all publishing points.

The time of each fragment is shifted to the time of day, counted from 1970. So the segments of a further session continue the time
line of the session before, and segments of different tracks belong together by their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from domain.event.values import AudioInput
from workers.media.boxes import BoxStream
from workers.media.cmaf import LARGEST, CmafFragment, CmafHeader, fragment, header
from workers.media.errors import Unreadable


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment. `start`, in seconds since 1970, and `duration` are media times; `data` contains its fragments."""

    track: str
    number: int
    start: float
    duration: float
    data: Sequence[bytes] = field(repr=False)

    @property
    def size(self) -> int:
        return sum(map(len, self.data))


@dataclass(frozen=True, slots=True)
class TrackPlan:
    """A track that is expected. `name` is `v0`, `v1`… for video and `a0`… for audio."""

    name: str
    bitrate: int
    fps: float | None = None
    audio: AudioInput | None = None

    @property
    def video(self) -> bool:
        return self.audio is None


@dataclass(frozen=True, slots=True)
class Track:
    """A track whose header is known."""

    plan: TrackPlan
    header: CmafHeader

    @property
    def name(self) -> str:
        return self.plan.name


class Listener(Protocol):
    """Receives the output of an encode. Its methods never wait."""

    def begin(self, tracks: Sequence[Track]) -> None:
        """Receive the tracks, whose headers are all known. This is the first call."""
        ...

    def take_fragment(self, track: Track, fragment: CmafFragment) -> None: ...

    def take_segment(self, track: Track, segment: Segment) -> None: ...


class EncodeClock:
    """The time at which the first frame was shown, by the clock of that moment. Later changes of the clock do not affect it."""

    def __init__(self, *, now: Callable[[], float], segment: float, session: int) -> None:
        self._now = now
        self._session = session
        self.segment = segment
        self._origin: float | None = None

    def origin(self, *, seen: float) -> float:
        """Return the time in seconds since 1970. `seen` is the number of seconds of media that have come at the first call."""
        if self._origin is None:
            self._origin = self._now() - seen
        return self._origin

    def number(self, index: int) -> int:
        """Return the number of the segment with this index in its session. It is made of the time of day and the number of the
        session, so that a session that follows at once repeats no number of the one before."""
        return math.ceil((self._origin or 0.0) / self.segment) + self._session + index


class EncodedTracks:
    """All tracks of an encode. Fragments that come before every header is known wait."""

    def __init__(self, plans: Sequence[TrackPlan], listener: Listener, *, timeline: EncodeClock) -> None:
        self._listener = listener
        self._waiting: list[tuple[TrackReader, CmafFragment]] = []
        self.readers = [TrackReader(plan, self, timeline=timeline) for plan in plans]
        self.bytes = 0
        self._begun = False

    def begin_when_complete(self) -> None:
        """Begin if the headers of all tracks are known now."""
        tracks = [reader.track for reader in self.readers if reader.track is not None]
        if len(tracks) == len(self.readers):
            self._begun = True
            self._listener.begin(tracks)
            for reader, waiting in self._waiting:
                self._give(reader, waiting)
            self._waiting.clear()

    def take(self, reader: TrackReader, fragment: CmafFragment) -> None:
        self.bytes += len(fragment.data)
        if self._begun:
            self._give(reader, fragment)
        else:
            self._waiting.append((reader, fragment))

    def end(self) -> None:
        """End the encode. The fragments of an incomplete last segment become a segment, too."""
        if self._begun:
            for reader in self.readers:
                self._segment(reader, reader.cut())

    def _give(self, reader: TrackReader, fragment: CmafFragment) -> None:
        assert reader.track is not None
        self._segment(reader, reader.cut(before=fragment))
        reader.keep(fragment)
        self._listener.take_fragment(reader.track, fragment)

    def _segment(self, reader: TrackReader, segment: Segment | None) -> None:
        if segment is not None and reader.track is not None:
            self._listener.take_segment(reader.track, segment)


class TrackReader:
    """Reads the pipe of one track."""

    def __init__(self, plan: TrackPlan, tracks: EncodedTracks, *, timeline: EncodeClock) -> None:
        self.plan = plan
        self.track: Track | None = None
        self._tracks = tracks
        self._timeline = timeline
        self._boxes = BoxStream(most=LARGEST)
        self._head = b""
        self._moof = b""
        self._fragments: list[CmafFragment] = []
        self._index = 0
        self._shift = 0

    def feed(self, piece: bytes) -> None:
        """Process a piece of the pipe. Raises `Unreadable`."""
        for kind, box in self._boxes.feed(piece):
            match kind:
                case b"ftyp":
                    self._head = box
                case b"moov":
                    self.track = Track(self.plan, header(self._head + box))
                    self._tracks.begin_when_complete()
                case b"moof":
                    self._moof = box
                case b"mdat" if self._moof:
                    self._tracks.take(self, self._shifted(self._moof, box))
                    self._moof = b""

    def _shifted(self, moof: bytes, mdat: bytes) -> CmafFragment:
        if self.track is None:
            raise Unreadable("a fragment came before its header")
        scale = self.track.header.timescale
        if not self._shift:
            first = fragment(moof, mdat, defaults=self.track.header.defaults)
            self._shift = round(self._timeline.origin(seen=(first.time + first.duration) / scale) * scale)
        return fragment(moof, mdat, shift=self._shift, defaults=self.track.header.defaults)

    def cut(self, *, before: CmafFragment | None = None) -> Segment | None:
        """Return the segment that ends here, or None. A segment ends when a fragment begins after the border that all tracks share;
        for video only at a key frame."""
        if not self._fragments or self.track is None:
            return None
        if before is not None and ((self.plan.video and not before.key) or before.time < self._border()):
            return None
        scale, first = self.track.header.timescale, self._fragments[0]
        ticks = sum(each.duration for each in self._fragments)
        number = self._timeline.number(self._index)
        segment = Segment(self.plan.name, number, first.time / scale, ticks / scale, [each.data for each in self._fragments])
        self._fragments = []
        self._index = self._place(before) if before is not None else self._index + 1
        return segment

    def keep(self, fragment: CmafFragment) -> None:
        self._fragments.append(fragment)

    def _border(self) -> float:
        """Return the end of the present segment in ticks, less a hundredth of a second, because frames of some rates come slightly
        before it."""
        assert self.track is not None
        return self._shift + ((self._index + 1) * self._timeline.segment - 0.01) * self.track.header.timescale

    def _place(self, fragment: CmafFragment) -> int:
        assert self.track is not None
        seconds = (fragment.time - self._shift) / self.track.header.timescale
        return max(self._index + 1, int((seconds + 0.01) / self._timeline.segment))
