"""Parameters of `vod_capture`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from domain.kernel.errors import Malformed
from domain.kernel.stream_time import stream_point
from workers.job.context import StepFailed
from workers.job.workflow import WebUrl
from workers.job.workflows.vod.parameters import PackageParameters

MOST_SOURCES: Final = 8


def _point(text: str) -> str:
    try:
        stream_point(text, field="time")
    except Malformed:
        raise PydanticCustomError("time", "must be an ISO 8601 date-time, or a time hh:mm:ss[.fff] from the start") from None
    return text


Point = Annotated[str, AfterValidator(_point)]


class VodCapture(PackageParameters):
    """The parameters of `vod_capture`.

    `sources` are copies of one stream, which is captured from `start` until before `end`. All three are required when the step
    runs: a caller who submits the job for an Event may leave them to be filled in.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "sources": ["https://origin.example/live/master.m3u8"],
                    "start": "2031-01-01T18:00:00Z",
                    "end": "2031-01-01T19:45:00Z",
                }
            ]
        }
    )

    sources: Annotated[tuple[WebUrl, ...], Field(max_length=MOST_SOURCES)] = Field(
        (), description="Addresses of copies of one stream: HLS playlists or DASH manifests. An Event fills them in."
    )
    start: Point | None = Field(None, description="ISO 8601 date-time, or hh:mm:ss[.fff] from the start of the stream.")
    end: Point | None = Field(None, description="End in the form of start, and later than it.")
    frame_accurate: bool = Field(False, description="Cut at the exact frame, which needs encoding; otherwise at segments.")
    copy_ts: bool = Field(False, description="Keep the times of the stream.")


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The requested capture. If `absolute`, `start` and `end` are seconds since 1970, otherwise seconds since the start of the
    stream."""

    sources: tuple[str, ...]
    start: float
    end: float
    absolute: bool


def capture_request(parameters: VodCapture) -> CaptureRequest:
    """Return the requested capture. Raises `StepFailed` if it is impossible."""
    if not parameters.sources or parameters.start is None or parameters.end is None:
        raise StepFailed("sources, start and end are required.", final=True)
    start, end = stream_point(parameters.start, field="start"), stream_point(parameters.end, field="end")
    if start.is_absolute != end.is_absolute:
        raise StepFailed("start and end must both be date-times, or both be times from the start of the stream.", final=True)
    if start.date_time is not None and end.date_time is not None:
        begin, until = start.date_time.timestamp(), end.date_time.timestamp()
    else:
        begin, until = _seconds(start.time_span), _seconds(end.time_span)
    if until <= begin:
        raise StepFailed("The end of the capture is not after its start.", final=True)
    return CaptureRequest(parameters.sources, begin, until, start.is_absolute)


def _seconds(span: str) -> float:
    hours, minutes, rest = span.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)
