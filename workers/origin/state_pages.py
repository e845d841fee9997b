"""State pages of publishing points in the formats of health checks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import quoteattr

from workers.origin.recordings import SessionRecording

_SILENCE: Final = 300.0
"""Seconds without data after which a session counts as ended, whatever the encoder said."""
_RECEIVING: Final = 10.0
_SMIL: Final = "http://www.w3.org/2001/SMIL20/Language"


@dataclass(frozen=True, slots=True)
class Stretch:
    """The recorded part of a track in one recording, as Unix times."""

    track: str
    begin: float
    end: float
    bytes: int


@dataclass(frozen=True, slots=True)
class PagePointState:
    """The state of a publishing point. `name` is idle, started or stopped. `updated` is the Unix time at which the last segment
    arrived; 0 if none ever did."""

    name: str
    session: int
    updated: float
    receiving: bool
    stretches: Sequence[Stretch]


def state(recordings: Sequence[SessionRecording], *, now: float) -> PagePointState:
    if not recordings:
        return PagePointState("idle", -1, 0.0, False, ())
    last = recordings[-1]
    filled = [recording for recording in recordings if recording.filled]
    updated = filled[-1].written if filled else 0.0
    silent = now - last.written > _SILENCE
    name = "stopped" if last.ended or (last.filled and silent) else "started" if last.filled else "idle"
    longest = max((track.longest for track in last.tracks.values()), default=0.0)
    receiving = name == "started" and now - last.written < max(_RECEIVING, 3 * longest)
    return PagePointState(
        name, last.state.session, updated, receiving, [stretch for recording in recordings for stretch in _stretches(recording)]
    )


def smil(state: PagePointState, *, archive: bool) -> str:
    """Return the page in the format of Unified Origin's `/state`; the archive page also lists the recorded parts."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<smil xmlns="{_SMIL}">', "  <head>"]
    lines.append(f'    <meta name="updated" content="{_micros(state.updated)}"/>')
    lines.append(f'    <meta name="state" content="{state.name}"/>')
    lines.append("  </head>")
    if archive:
        lines.append("  <body>")
        lines += [
            f'    <ref src={quoteattr(stretch.track)} begin="{_micros(stretch.begin)}" end="{_micros(stretch.end)}" '
            f'size="{stretch.bytes}"/>'
            for stretch in state.stretches
        ]
        lines.append("  </body>")
    return "\n".join([*lines, "</smil>", ""])


def status(state: PagePointState) -> str:
    updated = _micros(state.updated) if state.updated else None
    return json.dumps({"state": state.name, "lastUpdated": updated, "receivingData": state.receiving})


def _stretches(recording: SessionRecording) -> list[Stretch]:
    return [
        Stretch(name, track.segments[0].at, track.segments[-1].end, track.size)
        for name, track in recording.tracks.items()
        if track.segments
    ]


def _micros(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
