"""`asset_image`: the frame that is shown at a time, as a JPEG file."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict, Field

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.workflow import Step, Workflow
from workers.job.workflows.assets.span import AssetParameters, Time, in_seconds
from workers.job.workflows.content_file import probe
from workers.job.workflows.encode import ANY_PICTURE, encode
from workers.job.workflows.vod.codecs import still
from workers.media.colours import JPEG
from workers.media.file import seconds
from workers.media.outputs import jpeg
from workers.media.source import picture_of

_QUALITY: Final = 2


class AssetImage(AssetParameters):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content_id": "match-17", "source": "match.mp4", "name": "goal.jpg", "time": "00:01:30"}]}
    )

    time: Time = Field(description="Time of the picture from the start of the file, hh:mm:ss[.fff].", examples=["00:01:30"])


def make(context: StepContext[AssetImage]) -> StepResult:
    parameters = context.parameters
    source = probe(context, parameters.source)
    frame = source.frame(in_seconds(parameters.time), what=parameters.time)
    output = context.workspace / "image.jpg"
    cut = f"trim=start={seconds(frame.begin + source.start)}:end={seconds(frame.middle + source.start)}"
    filters = ",".join((cut, *still(picture_of(source)), JPEG))
    picture = ("-map", f"0:{source.video.index}", "-vf", filters, "-frames:v", "1")
    encode(context, source, *ANY_PICTURE, *source.stamped(frame.seek), *picture, *jpeg(quality=_QUALITY), output.name, lasts=0.0)
    if not output.is_file():
        raise StepFailed(f"The picture of {source.name} at {parameters.time} cannot be decoded.", final=True)
    context.publish(output, parameters.name)
    return StepResult(message=f"{parameters.name}: the frame at {frame.at:.3f} s")


ASSET_IMAGE: Final = Workflow("asset_image", AssetImage, (Step("make", make),), description="Makes a JPEG of one frame of a video.")
