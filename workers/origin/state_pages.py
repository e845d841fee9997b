"""Pages that tell whether a publishing point gets data, in the forms that health checks ask for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import quoteattr

from workers.origin.recordings import Recording

_SILENCE: Final = 300.0
"""Seconds without data after which a session counts as ended, whatever the encoder said."""
_RECEIVING: Final = 10.0
_SMIL: Final = "http://www.w3.org/2001/SMIL20/Language"


@dataclass(frozen=True, slots=True)
class Stretch:
    """What there is of a track in one recording, as Unix times."""

    track: str
    begin: float
    end: float
    bytes: int


@dataclass(frozen=True, slots=True)
class State:
    """`name` is idle, started or stopped. `updated` is when the last segment came, a Unix time; 0: none ever did."""

    name: str
    session: int
    updated: float
    receiving: bool
    stretches: Sequence[Stretch]


def state(recordings: Sequence[Recording], *, now: float) -> State:
    if not recordings:
        return State("idle", -1, 0.0, False, ())
    last = recordings[-1]
    filled = [one for one in recordings if one.filled]
    updated = filled[-1].written if filled else 0.0
    silent = now - last.written > _SILENCE
    name = "stopped" if last.ended or (last.filled and silent) else "started" if last.filled else "idle"
    longest = max((track.longest for track in last.tracks.values()), default=0.0)
    receiving = name == "started" and now - last.written < max(_RECEIVING, 3 * longest)
    return State(name, last.state.session, updated, receiving, [one for recording in recordings for one in _stretches(recording)])


def smil(found: State, *, archive: bool) -> str:
    """As Unified Origin's `/state` has it; the archive lists what there is too."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<smil xmlns="{_SMIL}">', "  <head>"]
    lines.append(f'    <meta name="updated" content="{_micros(found.updated)}"/>')
    lines.append(f'    <meta name="state" content="{found.name}"/>')
    lines.append("  </head>")
    if archive:
        lines.append("  <body>")
        lines += [
            f'    <ref src={quoteattr(one.track)} begin="{_micros(one.begin)}" end="{_micros(one.end)}" size="{one.bytes}"/>'
            for one in found.stretches
        ]
        lines.append("  </body>")
    return "\n".join([*lines, "</smil>", ""])


def status(found: State) -> str:
    updated = _micros(found.updated) if found.updated else None
    return json.dumps({"state": found.name, "lastUpdated": updated, "receivingData": found.receiving})


def _stretches(recording: Recording) -> list[Stretch]:
    return [
        Stretch(name, track.segments[0].at, track.segments[-1].end, track.size)
        for name, track in recording.tracks.items()
        if track.segments
    ]


def _micros(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
