"""The file `metadata.json` in the content of an Event: docs/reference/api/vod.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from domain.kernel.errors import Refused
from domain.kernel.strict_json import NotStrict, strict_json

NAME: Final = "metadata.json"
LARGEST: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Metadata:
    """A checked file: `text` is the stored JSON, `names` are the files that it lists."""

    text: bytes
    duration: float
    names: Sequence[str]


class BrokenMetadata(Refused):
    """Raised when the file exists but is not valid."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{NAME} of the Event {fault}")


def parsed(text: bytes, *, content_id: str) -> Metadata:
    """Parse the file. Raises `BrokenMetadata`."""
    try:
        document = strict_json(text)
    except NotStrict as error:
        raise BrokenMetadata(error.message) from None
    if not isinstance(document, dict):
        raise BrokenMetadata("is not an object")
    if document.get("contentId") != content_id:
        raise BrokenMetadata("has the contentId of other content, or none")
    duration = document.get("duration")
    if not isinstance(duration, int | float) or isinstance(duration, bool) or not duration >= 0 or not isfinite(duration):
        raise BrokenMetadata("has no duration: a number of seconds from 0")
    files = document.get("files")
    if not isinstance(files, list):
        raise BrokenMetadata("has no files: an array")
    for index, file in enumerate(files):
        fault = _fault(file)
        if fault is not None:
            raise BrokenMetadata(f"is invalid at files[{index}]: {fault}")
    return Metadata(text, float(duration), [file["name"] for file in files])


def start_time(text: bytes) -> str | None:
    """Return the time at which the first frame was captured; None if the file does not contain it, or cannot be read."""
    try:
        document = strict_json(text)
    except NotStrict:
        return None
    start = document.get("startTime") if isinstance(document, dict) else None
    return start if isinstance(start, str) else None


def _fault(file: Any) -> str | None:
    if not isinstance(file, dict):
        return "must be an object"
    name, size = file.get("name"), file.get("size")
    if not isinstance(name, str) or not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        return "the name must be a path below the folder of the content"
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return "the size must be a whole number from 0"
    return None
