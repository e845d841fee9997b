"""A media file in the folder of the content of a job."""

from __future__ import annotations

from typing import Any

from workers.job.context import StepContext
from workers.media.file import ALL_OF_IT, ProbedFile, probe_at


def probe(context: StepContext[Any], file: str, *, show: tuple[str, ...] = ALL_OF_IT) -> ProbedFile:
    """Probe a file, given by its path in the folder of the content. A file that cannot be read fails the step for good, with the
    reason."""
    name = f"{context.job.content_id}/{file}"
    return probe_at(context, context.path(name), name=name, show=show)
