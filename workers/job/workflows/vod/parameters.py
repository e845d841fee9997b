"""Parameters that the workflows of VOD packages share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from workers.job.media_paths import Segment, segment_fault
from workers.job.workflow import JobParameters


def _also_with_suffix(content_id: str) -> str:
    fault = segment_fault(f"{content_id}.mp4")
    if fault is not None:
        raise PydanticCustomError("segment", "with .mp4 {fault}", {"fault": fault})
    return content_id


def _different(lines: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(lines)) < len(lines):
        raise PydanticCustomError("renditions", "must be different")
    return lines


Lines = Annotated[int, Field(ge=16, le=4320)]
"""The shorter side of a picture, in pixels: 720 for 1280 x 720, and for 720 x 1280 too."""


_CaptionService = Annotated[str, Field(pattern=r"^(CC[1-4]|SERVICE([1-9]|[1-5][0-9]|6[0-3]))$")]
_Language = Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,4}$", examples=["en"])]


class PackageParameters(JobParameters):
    """The parameters of workflows that package a film.

    `renditions` are the shorter sides of their pictures; by default they follow from the source. `publish` is for the Event that
    owns the job.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content_id": "8f51eaa1-decb-4863-89d3-9eb99768c67b", "renditions": [720, 360]}]}
    )

    content_id: Annotated[Segment, AfterValidator(_also_with_suffix)] = Field(
        description="Id of the Event whose content it is; its files are in the folder of this name below the media root.",
        examples=["8f51eaa1-decb-4863-89d3-9eb99768c67b"],
    )
    renditions: Annotated[tuple[Lines, ...], Field(min_length=1, max_length=8), AfterValidator(_different)] | None = Field(
        None, description="Shorter sides of the pictures in pixels; by default they follow from the source.", examples=[[720, 360]]
    )
    caption_languages: dict[_CaptionService, _Language] = Field(
        default_factory=dict,
        max_length=67,
        description="Languages (BCP 47) of captions within the pictures: CC1 to CC4 (CEA-608), SERVICE1 to SERVICE63 (CEA-708).",
        examples=[{"CC1": "en", "CC3": "es"}],
    )
    publish: bool | None = Field(
        None, description="Whether the Event that owns the job becomes public; by default as the Event specifies."
    )
