"""Pieces of a recording: segments with continuous time stamps, as one file, with their place on one line of time stamps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from workers.job.context import StepContext, StepFailed
from workers.job.workflows.capture.forms import Form, TrackForms, forms
from workers.job.workflows.capture.plan import CaptureGap, CapturePlan, Used
from workers.job.workflows.capture.recording import Recording
from workers.job.workflows.capture.segments import CapturedSegment, MediaResource
from workers.media.file import SECONDS, ProbedFile, complaint
from workers.media.track_headers import WRAP, Headers

_SAME: Final = 0.1
ADJOINING: Final = 0.25
_MOST_LOOKS: Final = 50
"""The largest number of changes within a run, and of segments without a key frame, that are examined."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A coded frame, in seconds."""

    pts: float
    dts: float
    lasts: float
    key: bool


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Segments of one source without a break.

    `begin` and `end` are moments of the recording, within the segments. `tail` is a segment after them, of which only audio that
    belongs before the end is used.
    """

    segments: tuple[CapturedSegment, ...]
    begin: float
    end: float
    tail: CapturedSegment | None = None

    @property
    def init(self) -> MediaResource | None:
        return self.segments[0].init


@dataclass(frozen=True, slots=True)
class Piece:
    """A run on the line of time stamps of the file.

    The time stamps of its packets plus `shift` are their places there. `first` are the packets of its first segment, `last` those
    of its last one, by their own time stamps. `sound` is when its audio begins, if that is in the same segments. `left_out` is how
    much of the time before it is not in the file, since no source has it.
    """

    run: SegmentRun
    first: tuple[Packet, ...]
    last: tuple[Packet, ...]
    sound: float | None
    shift: float = 0.0
    left_out: float = 0.0
    opens: float | None = None
    """The time at which its first key frame is decoded, by its own time stamps, if it does not begin with one."""

    @property
    def origin(self) -> float:
        """The time stamp of the first frame, which is shown at the beginning of the first segment."""
        return min(packet.pts for packet in self.first)

    @property
    def begins(self) -> float:
        return self.origin + self.shift

    @property
    def ends(self) -> float:
        return max(packet.pts + packet.lasts for packet in self.last) + self.shift

    def place(self, moment: float) -> float:
        return self.begins + moment - self.run.segments[0].at


def runs(plan: CapturePlan) -> Iterator[SegmentRun]:
    """Yield the runs of a plan, in order."""
    group: list[Used] = []
    for item in plan.items:
        if isinstance(item, CaptureGap) or (group and not _continues(group[-1], item)):
            if group:
                yield _run(group)
            group = []
        if isinstance(item, Used):
            group.append(item)
    if group:
        yield replace(_run(group), tail=plan.tail)


def _continues(before: Used, after: Used) -> bool:
    previous, following = before.segment, after.segment
    return (
        following.follows(previous)
        and not following.breaks
        and following.init == previous.init
        and before.until >= previous.end - 0.001
    )


def _run(group: Sequence[Used]) -> SegmentRun:
    return SegmentRun(tuple(used.segment for used in group), group[0].segment.at, group[-1].until)


class Workbench:
    """Writes segments to files, and examines them with ffprobe."""

    def __init__(self, context: StepContext[Any], recording: Recording) -> None:
        self._context = context
        self._recording = recording

    def write(self, run: SegmentRun, to: Path, *, segments: Sequence[CapturedSegment] | None = None) -> None:
        """Write the bytes of its segments one after another, after their initialization section."""
        whole = [*run.segments, *([run.tail] if run.tail is not None else [])]
        names = [segment.name for segment in (whole if segments is None else segments)]
        with to.open("wb") as file:
            for name in ([run.init.url] if run.init is not None else []) + names:
                self._recording.copy(name, file)

    def coded(self, run: SegmentRun, *, transport_stream: bool) -> dict[str, TrackForms]:
        """Return the coding of each track of a run, and the changes within the run."""
        first_forms = self._forms(run, run.segments[0])
        line: dict[str, list[tuple[float, Form]]] = {name: [(run.begin, form)] for name, form in first_forms.items()}
        if transport_stream:
            for moment, name, form in self._changes(run):
                if name in line and line[name][-1][1] != form:
                    line[name].append((max(moment, line[name][-1][0]), form))
        return {name: TrackForms(tuple(each), run.end) for name, each in line.items()}

    def _changes(self, run: SegmentRun) -> Iterator[tuple[float, str, Form]]:
        headers, known_forms = Headers(), dict[tuple[str, bytes], Form | None]()
        for segment in run.segments:
            made = self._context.workspace / "looked-at"
            self.write(run, made, segments=[segment])
            data = made.read_bytes()
            for sign in headers.signs(data):
                key = (sign.track, sign.headers)
                if key not in known_forms and len(known_forms) < _MOST_LOOKS:
                    made.write_bytes(sign.rest)
                    known_forms[key] = self._streams(made, segment).get(sign.track)
                form = known_forms.get(key)
                if form is not None:
                    yield min(max(segment.at + sign.after, run.begin), run.end), sign.track, form
            made.unlink()

    def _forms(self, run: SegmentRun, segment: CapturedSegment) -> dict[str, Form]:
        made = self._context.workspace / "looked-at"
        self.write(run, made, segments=[segment])
        track_forms = self._streams(made, segment)
        made.unlink()
        return track_forms

    def _streams(self, made: Path, segment: CapturedSegment) -> dict[str, Form]:
        media = ProbedFile(self._context, made, f"segment {segment.sequence} of source {segment.source}", {})
        ended = self._context.run("ffprobe", "-v", "error", "-show_streams", "-of", "json", *media.input(), seconds=SECONDS)
        try:
            probed = json.loads(ended.output)
        except ValueError:
            probed = None
        return forms(probed) if isinstance(probed, dict) else {}

    def opens(self, run: SegmentRun) -> float | None:
        """Return when the first key frame of a run is decoded; None if none is found."""
        for segment in run.segments[:_MOST_LOOKS]:
            for packet in self.packets(run, segment, stream="v:0"):
                if packet.key:
                    return packet.dts
        return None

    def packets(self, run: SegmentRun, segment: CapturedSegment, *, stream: str) -> tuple[Packet, ...]:
        """Return the packets of one segment, in the order in which they are decoded."""
        made = self._context.workspace / "looked-at"
        self.write(run, made, segments=[segment])
        media = ProbedFile(self._context, made, f"segment {segment.sequence} of source {segment.source}", {})
        show = ("-select_streams", stream, "-show_entries", "packet=pts_time,dts_time,duration_time,flags", "-of", "csv=p=0")
        ended = self._context.run("ffprobe", "-v", "error", *show, *media.input(), seconds=SECONDS)
        listed = [packet for line in ended.output.decode(errors="replace").splitlines() if (packet := _packet(line)) is not None]
        made.unlink(missing_ok=True)
        if not listed and (ended.status or stream.startswith("v")):
            reason = complaint(ended, made, name=media.name, program="ffprobe") if ended.status else "it has no such track"
            raise StepFailed(f"A segment cannot be read: {media.name}: {reason}.", final=True)
        return _with_durations(listed)


def from_key(all_runs: Sequence[SegmentRun], workbench: Workbench) -> list[SegmentRun]:
    """Return the runs from the first segment with a key frame on, since nothing before it can be decoded."""
    for number, run in enumerate(all_runs):
        for place, segment in enumerate(run.segments[:_MOST_LOOKS]):
            if any(packet.key for packet in workbench.packets(run, segment, stream="v:0")):
                return [replace(run, segments=run.segments[place:], begin=segment.at), *all_runs[number + 1 :]]
    raise StepFailed("The recording has no key frame, so nothing of it can be decoded.", final=True)


def place_pieces(video_runs: Sequence[SegmentRun], workbench: Workbench, *, keep_gaps: bool, wraps: bool) -> list[Piece]:
    """Return the pieces of video. They adjoin where the recording has no gap; a gap is left out unless it is to be kept."""
    pieces: list[Piece] = []
    for run in video_runs:
        first = workbench.packets(run, run.segments[0], stream="v:0")
        last = first if len(run.segments) == 1 else workbench.packets(run, run.segments[-1], stream="v:0")
        sound = min((packet.pts for packet in workbench.packets(run, run.segments[0], stream="a:0")), default=None)
        piece = Piece(run, first, last, sound, opens=None if first[0].key else workbench.opens(run))
        if pieces:
            before = pieces[-1]
            gap = max(run.begin - before.run.end, 0.0)
            gap = gap if gap > ADJOINING else 0.0
            left_out = before.left_out + (0.0 if keep_gaps else gap)
            expected = before.place(run.segments[0].at) - (left_out - before.left_out)
            piece = replace(piece, shift=_shift(piece, before, expected, gap=gap, wraps=wraps), left_out=left_out)
        last_expected = piece.origin + run.segments[-1].at - run.segments[0].at
        if wraps:
            turns = round((last_expected - min(packet.pts for packet in last)) / WRAP) * WRAP
            piece = replace(piece, last=tuple(replace(packet, pts=packet.pts + turns, dts=packet.dts + turns) for packet in last))
        pieces.append(piece)
    return pieces


def _shift(piece: Piece, before: Piece, expected: float, *, gap: float, wraps: bool) -> float:
    """Return the shift of a piece. Time stamps that continue those of the piece before are trusted; others are moved to the
    expected place."""
    own = piece.origin + before.shift
    turns = round((expected - own) / WRAP) * WRAP if wraps else 0.0
    if abs(own + turns - expected) <= _SAME:
        return before.shift + turns
    if not gap and abs(expected - before.ends) <= ADJOINING:
        expected = before.ends
    return expected - piece.origin


def _packet(line: str) -> Packet | None:
    fields = line.split(",")
    try:
        pts = float(fields[0])
        dts = float(fields[1]) if fields[1] != "N/A" else pts
        lasts = float(fields[2]) if fields[2] != "N/A" else 0.0
        return Packet(pts, dts, lasts, "K" in fields[3])
    except (ValueError, IndexError):
        return None


def _with_durations(packets: list[Packet]) -> tuple[Packet, ...]:
    """Return packets with their durations. Some containers do not state them; then a frame lasts until the next one."""
    if all(packet.lasts > 0 for packet in packets):
        return tuple(packets)
    times = sorted(packet.pts for packet in packets)
    apart = min((b - a for a, b in pairwise(times) if b > a), default=0.04)
    return tuple(replace(packet, lasts=packet.lasts or apart) for packet in packets)
