"""`probe_media`: writes the output of ffprobe for a file to the job's metadata and log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from workers.jobs.context import StepContext, StepFailed, StepResult
from workers.jobs.media_paths import RelativePath
from workers.jobs.programs import Ended
from workers.jobs.workflow import JobParameters, Step, Workflow

SECONDS: Final = 120.0
_CONTAINERS: Final = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,asf,flv,mpeg,mpegts,mxf,gxf,dv,ivf,ogg,nut,rm,wtv,"
    "aac,ac3,aiff,amr,ape,au,caf,dts,eac3,flac,loas,mp3,truehd,tta,w64,wav,wv,"
    "av1,h261,h263,h264,hevc,m4v,mpegvideo,obu,vc1,vvc,yuv4mpegpipe,ass,srt,webvtt"
)
"""The formats that ffprobe may read: none of them refers to other files, as playlists do."""
_SHOW: Final = ("-show_format", "-show_streams", "-show_chapters")


class ProbeMedia(JobParameters):
    """`file` is below the folder of the content."""

    file: RelativePath


def probe(context: StepContext[ProbeMedia]) -> StepResult:
    name = f"{context.job.content_id}/{context.parameters.file}"
    path = context.path(name)
    if not path.is_file():
        raise StepFailed(f"There is no file {name}.", final=True)
    limits = ("-protocol_whitelist", "file", "-format_whitelist", _CONTAINERS)
    arguments = ("-v", "error", *limits, *_SHOW, "-of", "json", "-i", f"file:{path}")
    ended = context.run("ffprobe", *arguments, seconds=SECONDS)
    if ended.status != 0:
        raise StepFailed(_complaint(ended, path, name=name), final=ended.status > 0)
    metadata = _metadata(ended.output)
    if isinstance(metadata.get("format"), dict):
        metadata["format"]["filename"] = name
    context.log(json.dumps(metadata, ensure_ascii=False))
    return StepResult(message=f"Probed {name}", metadata=metadata)


def _metadata(output: bytes) -> dict[str, Any]:
    try:
        metadata = json.loads(output)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise StepFailed("ffprobe did not answer in JSON, or with too much of it.", final=True)
    return metadata


def _complaint(ended: Ended, path: Path, *, name: str) -> str:
    """The last line of its errors, without paths of this machine."""
    lines = [line for line in ended.errors.decode(errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else f"it ended with status {ended.status}"
    return f"ffprobe: {last.replace(f'file:{path}', name).replace(str(path), name)}"


PROBE_MEDIA: Final = Workflow("probe_media", ProbeMedia, (Step("probe", probe),))
