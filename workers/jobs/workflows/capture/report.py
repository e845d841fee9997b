"""What a capture tells of its sources: who had what, and what nobody had."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlsplit

from workers.jobs.workflows.capture.plan import Plan, Used
from workers.jobs.workflows.capture.recorder import Recorded
from workers.jobs.workflows.capture.segments import shown_time

_MOST: Final = 1000
"""Gaps in the result of the job; the log of the job has more."""


@dataclass(frozen=True, slots=True)
class Report:
    metadata: dict[str, Any]
    lines: tuple[str, ...]
    seconds: float


def report(recorded: Recorded) -> Report:
    gaps: list[dict[str, Any]] = []
    lines: list[str] = []
    given: dict[int, float] = defaultdict(float)
    for plan in recorded.plans.values():
        for used in plan.used:
            given[used.segment.source] += used.until - used.segment.at
    leading = max(given, key=lambda number: (given[number], -number))
    for kind, plan in recorded.plans.items():
        for begin, end, source in _not_of(leading, plan):
            begins, ends = (shown_time(one, clocked=recorded.clocked) for one in (begin, end))
            gaps.append({"track": kind, "from": begins, "to": ends, "filledBy": source})
            filled = f"taken from source {source}" if source else "no source has it; the file is joined over it"
            lines.append(f"Source {leading} has no {kind} track from {begins} to {ends}: {filled}.")
    sources = [
        {"source": one.number, "host": urlsplit(one.url).hostname, "seconds": round(given[one.number], 3), "fault": one.fault}
        for one in recorded.sources
    ]
    seconds = sum(one.until - one.segment.at for one in recorded.plans["main"].used)
    return Report({"sources": sources, "gaps": gaps[:_MOST]}, tuple(lines), seconds)


def _not_of(leading: int, plan: Plan) -> list[tuple[float, float, int | None]]:
    """From when to when another source was used, or none."""
    spans = [
        (one.segment.at, one.until, one.segment.source) if isinstance(one, Used) else (one.begin, one.end, None)
        for one in plan.items
    ]
    found = []
    for source, group in groupby(spans, key=lambda span: span[2]):
        same = list(group)
        if source != leading:
            found.append((same[0][0], same[-1][1], source))
    return found
