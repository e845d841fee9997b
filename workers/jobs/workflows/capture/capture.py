"""`vod_capture`: turns what was live into a file. Playlists and segments come through the guarded client, never through ffmpeg."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from domain.job.values import Severity
from domain.kernel.clock import iso
from workers.jobs.context import StepContext, StepResult
from workers.jobs.workflow import Step, Workflow
from workers.jobs.workflows.capture.downloads import Downloads
from workers.jobs.workflows.capture.join import Joined, join
from workers.jobs.workflows.capture.parameters import VodCapture, wanted
from workers.jobs.workflows.capture.recorder import Recorded, Recorder
from workers.jobs.workflows.capture.report import report
from workers.jobs.workflows.capture.shelf import Shelf

METADATA: Final = "metadata.json"


def capture(context: StepContext[VodCapture]) -> StepResult:
    given = context.parameters
    what = wanted(given)
    shelf = Shelf(context.workspace)

    async def record() -> Recorded:
        client = context.environment.download()
        try:
            downloads = Downloads(client, context.workspace, limits=context.environment.limits)
            return await Recorder(context, what, downloads, shelf=shelf).record()
        finally:
            await client.close()

    recorded = context.cancellation.wait_for(record())
    found = report(recorded)
    for line in found.lines:
        context.log(line, Severity.WARN)
    joined = join(context, recorded, shelf=shelf, accurate=given.frame_accurate, copy_ts=given.copy_ts)
    return _published(context, recorded, joined, said=found.metadata)


def _published(context: StepContext[VodCapture], recorded: Recorded, joined: Joined, *, said: dict[str, Any]) -> StepResult:
    name = f"{context.job.content_id}.mp4"
    lasts = round(joined.cut.lasts, 3)
    began = iso(datetime.fromtimestamp(joined.cut.moment, UTC)) if recorded.clocked else None
    context.publish(joined.path, name)
    described = {"contentId": context.job.content_id, "duration": lasts, **({"startTime": began} if began else {})}
    described["files"] = [{"name": name, "size": joined.path.stat().st_size}]
    metadata = context.workspace / METADATA
    metadata.write_text(json.dumps(described, ensure_ascii=False) + "\n", encoding="utf-8")
    context.publish(metadata, METADATA)
    context.progress(1)
    told = {"duration": lasts, "startTime": began, "pieces": joined.pieces, **said}
    return StepResult(message=f"Captured {lasts:.3f} s", metadata=told)


VOD_CAPTURE: Final = Workflow("vod_capture", VodCapture, (Step("capture", capture, needs_network=True),))
