"""The step that looks for captions of a film: those that its pictures carry."""

from __future__ import annotations

from typing import Final

from domain.job.values import Severity
from workers.jobs.context import StepContext, StepResult
from workers.jobs.workflows.media_file import MediaFile
from workers.jobs.workflows.vod.embedded_captions import embedded_captions
from workers.jobs.workflows.vod.parameters import PackageParameters
from workers.media.captions.a53 import CaptionServices

CAPTIONS: Final = "captions"


def find_captions(context: StepContext[PackageParameters]) -> StepResult:
    smallest = context.results["renditions"]["videos"][-1]["file"]
    found = embedded_captions(context, MediaFile(context, context.job_file(smallest), "the rendition", {}))
    services = found.services
    for channel in found.truncated:
        context.log(f"The captions {channel} are too long; what follows is left out of their text.", Severity.WARN)
    return StepResult(
        message=_said(services),
        metadata={"channels": list(services.channels), "services": list(services.services)},
    )


def _said(services: CaptionServices) -> str:
    names = [*services.channels, *(f"service {number}" for number in services.services)]
    return f"The pictures carry the captions {', '.join(names)}" if names else "The pictures carry no captions"
