"""Paths of jobs' files below the media root, and the names that are allowed in them.

    <content_id>/...                     published
    .jobs/<job>/files/<name>             kept for later steps of the same job
    .jobs/<job>/<task>/<run>/            the workspace of one run of one step

A name from a client never begins with a dot, so it cannot lead to the files of jobs.
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
"""The limit of Linux for the name of a file."""


def segment_fault(name: str) -> str | None:
    """Return the reason why this is not a valid name of a file or folder; None if it is valid."""
    if not 1 <= len(name) <= _LONGEST or len(name.encode("utf-8", "replace")) > _LONGEST_BYTES:
        return f"must have 1 to {_LONGEST} characters, and at most {_LONGEST_BYTES} bytes in UTF-8"
    if "/" in name or "\\" in name or not name.isprintable():
        return "may not have slashes, backslashes or unprintable characters"
    return "may not begin with a dot" if name.startswith(".") else None


def path_fault(name: str) -> str | None:
    """Return the reason why this is not a valid relative path; None if it is valid."""
    return next((fault for fault in map(segment_fault, name.split("/")) if fault is not None), None)


def _segment(name: str) -> str:
    fault = segment_fault(name)
    if fault is not None:
        raise PydanticCustomError("segment", "{fault}", {"fault": fault})
    return name


def _path(name: str) -> str:
    fault = path_fault(name)
    if fault is not None:
        raise PydanticCustomError("path", "{fault}", {"fault": f"has a part that {fault}"})
    return name


Segment = Annotated[str, AfterValidator(_segment)]
"""A valid name of a file or folder."""

RelativePath = Annotated[str, AfterValidator(_path)]
"""Valid names with slashes between them."""


class PathEscape(Exception):
    """Raised when a path leads out of the folder that it belongs in."""


def is_own(path: str, name: str, *, job: int, content_id: str) -> bool:
    """Return True if a step of this job may publish or keep the file `path` of its workspace as `name`.

    Its process has checked that too, but the media that it reads may have taken over the process.
    """
    if any(part in ("", ".", "..") or "\0" in part or "\n" in part for part in path.split("/")):
        return False
    folder, _, file = name.rpartition("/")
    if folder == f"{JOBS}/{job}/files":
        return segment_fault(file) is None
    return name.startswith(f"{content_id}/") and path_fault(name) is None


@dataclass(frozen=True, slots=True)
class MediaPaths:
    """The paths of one job."""

    root: Path
    job: int

    def workspace(self, task: int, run: int) -> Path:
        return self.root / JOBS / str(self.job) / str(task) / str(run)

    def kept_path(self, name: str) -> str:
        """Return the path, below the root, of a file that is kept for later steps of the job."""
        return f"{JOBS}/{self.job}/files/{name}"

    def resolve(self, name: str) -> Path:
        """Return the absolute path of a file below the root. The file need not exist.

        Raises `PathEscape` if a symlink leads out of the root.
        """
        root = self.root.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise PathEscape
        return path
