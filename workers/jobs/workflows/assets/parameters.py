"""Parameters that the workflows of assets share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point
from workers.jobs.media_paths import RelativePath
from workers.jobs.workflow import JobParameters


def _from_start(text: str) -> str:
    try:
        is_valid = stream_point(text, field="time").is_span
    except Malformed:
        is_valid = False
    if not is_valid:
        raise PydanticCustomError("time", "must be a time hh:mm:ss[.fff] from the start of the stream")
    return text


Time = Annotated[str, AfterValidator(_from_start)]
"""A time from the start of the stream, such as `00:01:30.250`."""


class AssetParameters(JobParameters):
    """The parameters of all workflows of assets.

    `source` is the file that the asset is made from, and `name` the path of the asset, both below the folder of the content.
    """

    source: RelativePath = Field(description="Path of the source file, below the folder of the content.", examples=["match.mp4"])
    name: RelativePath = Field(description="Path of the new file, below the folder of the content.")


class ClipParameters(AssetParameters):
    """The parameters of a clip, which is shown from `start` until before `end`."""

    start: Time = Field(description="Time from the start of the file, hh:mm:ss[.fff].", examples=["00:01:30"])
    end: Time = Field(description="Time from the start of the file at which the clip ends, hh:mm:ss[.fff].", examples=["00:01:35"])


def in_seconds(time: str) -> float:
    hours, minutes, rest = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)
