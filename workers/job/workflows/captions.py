"""`captions`: makes WebVTT of a text, in the files that the packages of a film refer to.

The step that reads the text has no network, since it reads files from outside.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from domain.asset.values import CaptionKind
from domain.event import metadata_file
from domain.job.values import Severity
from workers.job.caption_answers import TEXT
from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.media_paths import RelativePath
from workers.job.workflow import JobParameters, Step, WebUrl, Workflow
from workers.media.captions.cues import UnreadableCaptions, clock
from workers.media.captions.reading import LATEST, MOST_BYTES, read
from workers.media.captions.tracks import TextTrack, track_files
from workers.ports.outbound import OutboundFailed, OutboundRefused

NAME: Final = "captions"
_SENT: Final = "text"
_LATE: Final = 1000
"""Milliseconds after the end of the film at which a last cue often ends."""


class Captions(JobParameters):
    """The parameters of `captions`: `sent`, a text that a client has sent, `file`, a path below the media root, or `url`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b", "name": "captions/german.de.vtt", "file": "in/german.srt"}
            ]
        }
    )

    name: RelativePath = Field(description="Path of the new WebVTT file, below the folder of the content.")
    sent: UUID | None = Field(None, strict=False, description="Id of a text that a client has sent; set by the product.")
    file: RelativePath | None = Field(None, description="The text: a path below the media root.")
    url: WebUrl | None = Field(None, description="The text: an http or https address.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.sent, self.file, self.url)) != 1:
            raise PydanticCustomError("source", "must have exactly one of sent, file and url")
        return self


def fetch(context: StepContext[Captions]) -> StepResult:
    """Get the text to where the next step, which has no network, can read it."""
    parameters, text = context.parameters, context.workspace / _SENT
    if parameters.file is not None:
        if not context.path(parameters.file).is_file():
            raise StepFailed(f"There is no file {parameters.file}.", final=True)
        return StepResult(message=f"Found {parameters.file}")
    if parameters.url is not None:
        _download(context, parameters.url, text)
    else:
        answer = context.ask(TEXT)
        if "refused" in answer:
            raise StepFailed(str(answer["refused"]), final=bool(answer.get("final")))
        text.write_bytes(b64decode(answer["text"]))
    context.keep(text, _SENT)
    return StepResult(message=f"Received {text.stat().st_size} bytes")


def _download(context: StepContext[Captions], url: str, to: Path) -> None:
    try:
        answer = context.download(url, to, most=MOST_BYTES)
    except OutboundRefused as refused:
        raise StepFailed(str(refused), final=True) from None
    except OutboundFailed as failed:
        large = failed.kind == "size"
        raise StepFailed(f"The captions have more than {MOST_BYTES} bytes." if large else str(failed), final=large) from None
    if answer.status != 200:
        raise StepFailed(f"The host answered {answer.status}.", final=400 <= answer.status < 500)


def convert(context: StepContext[Captions]) -> StepResult:
    """Convert the text. A text that cannot be shown with the film fails the job for good, with the reason."""
    parameters, lasts = context.parameters, _length(context)
    text = context.job_file(_SENT) if parameters.file is None else context.path(parameters.file)
    folder, _, file_name = parameters.name.rpartition("/")
    track = TextTrack(name="", language="", kind=CaptionKind.SUBTITLES, stem=file_name.removesuffix(".vtt"), folder=folder)
    try:
        with text.open("rb") as file:
            captions = read(file.read(MOST_BYTES + 1))
        first, last = captions.cues[0].begin, max(cue.end for cue in captions.cues)
        files = track_files(track, captions.cues, lasts=last / 1000 if lasts is None else lasts)
    except UnreadableCaptions as fault:
        raise StepFailed(str(fault), final=True) from None
    for remark in captions.remarks:
        context.log(remark, Severity.WARN)
    if lasts is not None:
        _compare(context, first, last, lasts=lasts)
    for name, content in files.items():
        path = context.workspace / name.rpartition("/")[2]
        path.write_bytes(content)
        context.publish(path, name)
    return StepResult(
        message=f"{len(captions.cues)} cues from {clock(first)} to {clock(last)}, read as {captions.format}",
        metadata={"format": captions.format, "cues": len(captions.cues), "first": first / 1000, "last": last / 1000},
    )


def _compare(context: StepContext[Any], first: int, last: int, *, lasts: float) -> None:
    """Compare the times of the cues with the length of the film."""
    if first >= lasts * 1000:
        begins = f"The first cue begins at {clock(first)}, and the film ends after {_clock_of(lasts)}"
        raise StepFailed(f"{begins}: the times of the cues do not count from the beginning of the film.", final=True)
    if last > lasts * 1000 + _LATE:
        context.log(f"The last cue ends at {clock(last)}, after the film, which ends at {_clock_of(lasts)}.", Severity.WARN)


def _clock_of(seconds: float) -> str:
    return clock(round(seconds * 1000))


def _length(context: StepContext[Any]) -> float | None:
    """Return the length of the film in seconds, as its package states it; None if it does not."""
    try:
        with context.path(f"{context.job.content_id}/{metadata_file.NAME}").open("rb") as file:
            duration = json.loads(file.read(metadata_file.LARGEST))["duration"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return float(duration) if isinstance(duration, int | float) and 0 < duration <= LATEST / 1000 else None


CAPTIONS: Final = Workflow(
    NAME,
    Captions,
    (Step("fetch", fetch, needs_network=True), Step("convert", convert, after=("fetch",))),
    submitted_by="asset",
    description="Makes WebVTT of captions, for HLS and DASH.",
)
