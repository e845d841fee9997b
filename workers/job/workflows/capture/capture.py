"""`vod_capture`: turns a live stream into the MP4 file of its content, which is packaged as by `vod_package`.

Playlists and segments come through the guarded client in the first step, the only one that has the network. ADR 0049.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from re import compile as regex
from typing import Any, Final
from urllib.parse import urlsplit

from domain.job.values import Severity
from domain.kernel.clock import iso
from workers.job.context import StepContext, StepResult
from workers.job.workflow import Step, Workflow
from workers.job.workflows.capture.downloads import Downloads
from workers.job.workflows.capture.join import join_pieces
from workers.job.workflows.capture.parameters import VodCapture, capture_request
from workers.job.workflows.capture.plan import CapturePlan, Used
from workers.job.workflows.capture.recorder import Recorded, Recorder
from workers.job.workflows.capture.recording import keep_recording, read_recording
from workers.job.workflows.capture.segments import shown_time
from workers.job.workflows.capture.shelf import Shelf
from workers.job.workflows.capture.text_follower import RecordedTexts, TextFollower
from workers.job.workflows.capture.texts import captured_texts, keep_recorded_texts
from workers.job.workflows.vod.package import PACKAGING
from workers.job.workflows.vod.renditions import CONVERTED, make_renditions
from workers.job.workflows.vod.texts import TEXTS, keep_texts

_LIVE: Final = regex(r"(/origin/live/[A-Za-z0-9._-]{1,64})/(master\.m3u8|manifest\.mpd|tracks/[A-Za-z0-9._-]{1,96}\.m3u8)")


def whole_recording(url: str, *, origin: str | None) -> str:
    """Return the address of the whole recording, if the URL is at the built-in origin; otherwise the URL.

    `origin` is the address of the built-in origin, such as `http://127.0.0.1:8080`. For DASH, too, the address is that of HLS with
    the same segments, since its numbers do not change when the stream ends.
    """
    if origin is None or not url.startswith(f"{origin}/"):
        return url
    live = _LIVE.fullmatch(url.removeprefix(origin))
    return url if live is None else f"{origin}{live[1]}/archive/{live[2].replace('manifest.mpd', 'master.m3u8')}"


_MOST: Final = 1000
"""The largest number of gaps in the result of the job; the log of the job has more."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    metadata: dict[str, Any]
    lines: tuple[str, ...]
    seconds: float


def report(recorded: Recorded) -> CaptureReport:
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
    return CaptureReport({"sources": sources, "gaps": gaps[:_MOST]}, tuple(lines), seconds)


def _foreign_spans(leading: int, plan: CapturePlan) -> list[tuple[float, float, int | None]]:
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


def record(context: StepContext[VodCapture]) -> StepResult:
    """Record the sources, and the texts beside them, into the workspace."""
    requested, origin = capture_request(context.parameters), context.environment.origin
    request = replace(requested, sources=tuple(whole_recording(url, origin=origin) for url in requested.sources))
    shelf = Shelf(context.workspace)

    async def follow() -> tuple[Recorded, RecordedTexts]:
        client = context.environment.download()
        try:
            downloads = Downloads(client, context.workspace, limits=context.environment.limits)
            texts = TextFollower(downloads, request, log=lambda line: context.log(line, Severity.WARN))
            async with texts.running():
                recorded = await Recorder(context, request, downloads, shelf=shelf).record()
            return recorded, texts.texts
        finally:
            await client.close()

    recorded, texts = context.cancellation.wait_for(follow())
    keep_recorded_texts(context, texts)
    summary = report(recorded)
    for line in summary.lines:
        context.log(line, Severity.WARN)
    keep_recording(
        context,
        recorded.plans,
        shelf=shelf,
        bounds=(recorded.start, recorded.end),
        clocked=recorded.clocked,
        container=recorded.container,
    )
    context.progress(1)
    return StepResult(message=f"Recorded {summary.seconds:.3f} s", metadata=summary.metadata)


def join(context: StepContext[VodCapture]) -> StepResult:
    """Make the film and its subtitles from the recording."""
    parameters = context.parameters
    recording = read_recording(context)
    joined = join_pieces(context, recording, accurate=parameters.frame_accurate, copy_ts=parameters.copy_ts)
    texts = keep_texts(context, captured_texts(context, recording, cut_at=joined.cut, keep_gaps=parameters.copy_ts))
    lasts = round(joined.cut.lasts, 3)
    began = iso(datetime.fromtimestamp(joined.cut.moment, UTC)) if recording.clocked else None
    context.keep(joined.path, CONVERTED)
    return StepResult(
        message=f"Captured {lasts:.3f} s", metadata={"duration": lasts, "startTime": began, "pieces": joined.pieces, TEXTS: texts}
    )


VOD_CAPTURE: Final = Workflow(
    "vod_capture",
    VodCapture,
    (
        Step("record", record, needs_network=True),
        Step("join", join, after=("record",)),
        Step("renditions", make_renditions, after=("join",)),
        *PACKAGING,
    ),
    description="Records a part of the stream of the Event that content_id names and packages it for HLS and DASH.",
)
