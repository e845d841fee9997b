"""Subtitles of a recording: moved to the times of the film that was joined from it.

WebVTT in HLS states where its times are on the time line of the media (X-TIMESTAMP-MAP), as segments of MP4 do. The places of the
pictures of a run of segments on that line are known, and so are their places in the film.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from re import compile as regex
from typing import Any, Final

from domain.asset.values import CaptionKind
from domain.job.values import Severity
from workers.job.context import StepContext
from workers.job.workflows.capture.film import Cut
from workers.job.workflows.capture.pieces import Piece, Workbench, place_pieces, runs
from workers.job.workflows.capture.recording import Recording
from workers.job.workflows.capture.text_follower import RecordedTexts, TextPart
from workers.job.workflows.encode import LONGEST
from workers.job.workflows.vod.embedded_captions import copied_packets, discard_packets, packets
from workers.job.workflows.vod.subtitle_tracks import bcp_47
from workers.job.workflows.vod.texts import FilmTextTrack
from workers.media.captions.cues import Cue, UnreadableCaptions, cut, in_order
from workers.media.captions.reading import MOST_CUES, read
from workers.media.captions.samples import read_samples

_FILE: Final = "recorded-texts.json"
_MAP: Final = regex(rb"X-TIMESTAMP-MAP=([^\r\n]{1,100})")
_MPEGTS: Final = regex(rb"MPEGTS:([0-9]{1,11})")
_LOCAL: Final = regex(rb"LOCAL:(?:([0-9]{1,4}):)?([0-9]{1,2}):([0-9]{1,2})\.([0-9]{3})")
_WRAP: Final = 2**33 / 90_000


def keep_recorded_texts(context: StepContext[Any], recorded: RecordedTexts) -> None:
    """Keep the texts for the step that joins the recording."""
    file = context.workspace / _FILE
    file.write_text(json.dumps(recorded.members()))
    context.keep(file, _FILE)


def captured_texts(context: StepContext[Any], recording: Recording, *, cut_at: Cut, keep_gaps: bool) -> list[FilmTextTrack]:
    recorded = json.loads(context.job_file(_FILE).read_text())
    parts = [TextPart(track, at, base, init, b64decode(body)) for track, at, base, init, body in recorded["parts"]]
    if not parts:
        return []
    inits = {digest: b64decode(body) for digest, body in recorded["inits"].items()}
    wraps = recording.container == "mpegts"
    pieces = place_pieces(list(runs(recording.plans["main"])), Workbench(context, recording), keep_gaps=keep_gaps, wraps=wraps)
    line = _FilmTimeline(pieces, cut_at)
    texts = []
    for number, track in enumerate(recorded["tracks"]):
        cues: dict[Cue, None] = {}
        faults = 0
        for source in _sources(context, [part for part in parts if part.track == number], inits):
            if source is None:
                faults += 1
            elif len(cues) < MOST_CUES:
                cues |= dict.fromkeys(filter(None, map(line.placer(source), source.cues)))
        if faults:
            context.log(f"{faults} segments of the subtitles {track['name']} cannot be read and are left out.", Severity.WARN)
        shown = cut(_merge_repeated(in_order(cues)), begin=0.0, end=cut_at.lasts)
        if shown:
            texts.append(FilmTextTrack(bcp_47(track["language"]), CaptionKind(track["kind"]), track["name"][:100], shown))
    return texts


@dataclass(frozen=True, slots=True)
class _Cues:
    """The cues of a part.

    `base` is that of the part. `offset` is added to their times, in seconds, which gives the times of the media.
    """

    cues: Sequence[Cue]
    at: float | None
    base: float | None
    offset: float = 0.0


class _FilmTimeline:
    """The time line of the film, in milliseconds from its first picture."""

    def __init__(self, pieces: Sequence[Piece], cut_at: Cut) -> None:
        self._pieces = pieces
        self._first = cut_at.first

    def placer(self, of: _Cues) -> Any:
        def place(cue: Cue) -> Cue | None:
            if of.base is not None:
                moments = [(piece, of.base + cue.begin / 1000) for piece in self._pieces]
            else:
                time = of.offset + cue.begin / 1000
                moments = [(piece, piece.run.segments[0].at + _unwrap(time - piece.origin)) for piece in self._pieces]
            lasts = (cue.end - cue.begin) / 1000
            shown = [
                (piece, begin, end)
                for piece, moment in moments
                if (end := min(moment + lasts, piece.run.end)) > (begin := max(moment, piece.run.begin))
            ]
            if not shown:
                return None
            piece, begin, end = min(shown, key=lambda frame: 0.0 if of.at is None else abs(frame[1] - of.at))
            first, last = (round((piece.place(moment) - self._first) * 1000) for moment in (begin, end))
            return replace(cue, begin=first, end=last) if last > first else None

        return place


def _unwrap(difference: float) -> float:
    """Return the smallest of all possible differences between two time stamps of 33 bits."""
    return difference - round(difference / _WRAP) * _WRAP if abs(difference) > _WRAP / 2 else difference


def _sources(context: StepContext[Any], parts: Sequence[TextPart], inits: dict[str, bytes]) -> Iterator[_Cues | None]:
    """Yield the cues of each part, or None for a part that cannot be read."""
    for part in parts:
        if part.init:
            continue
        try:
            cues = read(part.body).cues
        except UnreadableCaptions:
            if b"-->" in part.body:  # else a segment in which nothing is shown
                yield None
            continue
        offset = _offset(part.body)
        yield _Cues(cues, part.at, part.base if offset is None else None, offset or 0.0)
    for digest in dict.fromkeys(part.init for part in parts if part.init):
        same = [part for part in parts if part.init == digest]
        yield _of_segments(context, inits[digest] + b"".join(part.body for part in same))


def _of_segments(context: StepContext[Any], body: bytes) -> _Cues | None:
    place = context.workspace / "texts"
    file = place.with_suffix(".mp4")
    file.write_bytes(body)
    read_as = ("-copyts", "-protocol_whitelist", "file", "-f", "mov", "-i", f"file:{file}")
    context.run("ffmpeg", "-nostdin", "-v", "error", "-y", *read_as, *copied_packets(place.name, "-map", "0:0"), seconds=LONGEST)
    try:
        return _Cues(read_samples(packets(place)).cues, None, None)
    except UnreadableCaptions:
        return None
    finally:
        discard_packets(place)
        file.unlink()


def _offset(body: bytes) -> float | None:
    """Return the number that X-TIMESTAMP-MAP adds to times; None without one."""
    header = _MAP.search(body[:4096])
    if header is None:
        return None
    stamp, local = _MPEGTS.search(header[1]), _LOCAL.search(header[1])
    if stamp is None or local is None:
        return None
    hours, minutes, seconds, rest = (int(text or 0) for text in local.groups())
    return int(stamp[1]) / 90_000 - (hours * 3600 + minutes * 60 + seconds + rest / 1000)


def _merge_repeated(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Merge repeated cues: a cue over the border of two segments is in both, and its times may differ by a millisecond."""
    last: dict[tuple[str, str], Cue] = {}
    for cue in cues:
        before = last.get((cue.text, cue.settings))
        if before is None or cue.begin > before.begin + 2 or cue.end > before.end + 2:
            yield cue
        last[cue.text, cue.settings] = cue
