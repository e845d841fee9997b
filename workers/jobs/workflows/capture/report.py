"""The report of a capture about its sources: what each had, and what none had."""

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
"""The largest number of gaps in the result of the job; the log of the job has more."""


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
        for begin, end, source in _foreign_spans(leading, plan):
            begins, ends = (shown_time(moment, clocked=recorded.clocked) for moment in (begin, end))
            gaps.append({"track": kind, "from": begins, "to": ends, "filledBy": source})
            filled = f"taken from source {source}" if source else "no source has it; the film is joined across the gap"
            lines.append(f"Source {leading} has no {kind} track from {begins} to {ends}: {filled}.")
    sources = [
        {
            "source": source.number,
            "host": urlsplit(source.url).hostname,
            "seconds": round(given[source.number], 3),
            "fault": source.fault,
        }
        for source in recorded.sources
    ]
    seconds = sum(moment.until - moment.segment.at for moment in recorded.plans["main"].used)
    return Report({"sources": sources, "gaps": gaps[:_MOST]}, tuple(lines), seconds)


def _foreign_spans(leading: int, plan: Plan) -> list[tuple[float, float, int | None]]:
    """Return the spans in which another source than the leading one was used, or none."""
    spans = [
        (item.segment.at, item.until, item.segment.source) if isinstance(item, Used) else (item.begin, item.end, None)
        for item in plan.items
    ]
    spans_of_others = []
    for source, group in groupby(spans, key=lambda span: span[2]):
        same = list(group)
        if source != leading:
            spans_of_others.append((same[0][0], same[-1][1], source))
    return spans_of_others
