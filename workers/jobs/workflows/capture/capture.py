"""`vod_capture`: turns a live stream into the MP4 file of its content, which is packaged as by `vod_package`.

Playlists and segments come through the guarded client in the first step, the only one that has the network. ADR 0049.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from domain.job.values import Severity
from domain.kernel.clock import iso
from workers.jobs.context import StepContext, StepResult
from workers.jobs.workflow import Step, Workflow
from workers.jobs.workflows.capture.downloads import Downloads
from workers.jobs.workflows.capture.join import join_pieces
from workers.jobs.workflows.capture.own_origin import whole_recording
from workers.jobs.workflows.capture.parameters import VodCapture, capture_request
from workers.jobs.workflows.capture.recorder import Recorded, Recorder
from workers.jobs.workflows.capture.recording import keep_recording, read_recording
from workers.jobs.workflows.capture.report import report
from workers.jobs.workflows.capture.shelf import Shelf
from workers.jobs.workflows.capture.text_follower import RecordedTexts, TextFollower
from workers.jobs.workflows.capture.texts import captured_texts, keep_recorded_texts
from workers.jobs.workflows.vod.package import PACKAGING
from workers.jobs.workflows.vod.renditions import CONVERTED, make_renditions
from workers.jobs.workflows.vod.texts import TEXTS, keep_texts


def record(context: StepContext[VodCapture]) -> StepResult:
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
