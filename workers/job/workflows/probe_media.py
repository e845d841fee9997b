"""`probe_media`: writes the output of ffprobe for a file to the job's metadata and log."""

from __future__ import annotations

import json
from typing import Final

from pydantic import ConfigDict, Field

from workers.job.context import StepContext, StepResult
from workers.job.media_paths import RelativePath
from workers.job.workflow import JobParameters, Step, Workflow
from workers.job.workflows.content_file import probe as probe_file

_SHOW: Final = ("-show_format", "-show_streams", "-show_chapters")


class ProbeMedia(JobParameters):
    """The parameters of `probe_media`. `file` is below the folder of the content."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content_id": "match-17", "file": "match.mp4"}]})

    file: RelativePath = Field(description="Path of the file below the folder of the content.", examples=["match.mp4"])


def probe(context: StepContext[ProbeMedia]) -> StepResult:
    media = probe_file(context, context.parameters.file, show=_SHOW)
    metadata = media.probed
    if isinstance(metadata.get("format"), dict):
        metadata["format"]["filename"] = media.name
    context.log(json.dumps(metadata, ensure_ascii=False))
    return StepResult(message=f"Probed {media.name}", metadata=metadata)


PROBE_MEDIA: Final = Workflow(
    "probe_media", ProbeMedia, (Step("probe", probe),), description="Reads the format and the tracks of a media file."
)
