"""Where the files of jobs lie below the media root, and which names lead there. Issue 7, points 4 and 5.

    <content_id>/...                     published
    .jobs/<job>/files/<name>             kept for later steps of the same job
    .jobs/<job>/<task>/<run>/            the workspace of one run of one step

A name that a client gives never begins with a dot, so none leads to the files of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

JOBS: Final = ".jobs"
_LONGEST: Final = 200
_LONGEST_BYTES: Final = 255
"""What Linux takes as the name of a file."""


def segment_fault(name: str) -> str | None:
    """Why this is not the plain name of a file or folder."""
    if not 1 <= len(name) <= _LONGEST or len(name.encode("utf-8", "replace")) > _LONGEST_BYTES:
        return f"must have 1 to {_LONGEST} characters, and at most {_LONGEST_BYTES} bytes in UTF-8"
    if "/" in name or "\\" in name or not name.isprintable():
        return "may not have slashes, backslashes or characters that cannot be seen"
    return "may not begin with a dot" if name.startswith(".") else None


def path_fault(name: str) -> str | None:
    """Why this is not a relative path of such names."""
    return next((fault for fault in map(segment_fault, name.split("/")) if fault is not None), None)


def _segment(name: str) -> str:
    fault = segment_fault(name)
    if fault is not None:
        raise PydanticCustomError("segment", "{fault}", {"fault": fault})
    return name


def _path(name: str) -> str:
    fault = path_fault(name)
    if fault is not None:
        raise PydanticCustomError("path", "{fault}", {"fault": f"of its parts each {fault}"})
    return name


Segment = Annotated[str, AfterValidator(_segment)]
"""One plain name."""

RelativePath = Annotated[str, AfterValidator(_path)]
"""Plain names with slashes between them."""


class Outside(Exception):
    """A name leads out of the place that it should be in."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one job."""

    root: Path
    job: int

    def workspace(self, task: int, run: int) -> Path:
        return self.root / JOBS / str(self.job) / str(task) / str(run)

    def kept(self, name: str) -> str:
        """Below the root."""
        return f"{JOBS}/{self.job}/files/{name}"

    def found(self, name: str) -> Path:
        """A file below the root, with no symlink on its way that leads out of it. Whether it is there is not said."""
        root = self.root.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise Outside
        return path
