"""Published files of the media root, as a port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

_LONGEST_NAME: Final = 255
"""The limit of Linux for the name of a file, in bytes."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A published file. `path` is relative to the media root, with slashes; `modified` is the time of the last change."""

    path: str
    size: int
    modified: datetime


class MediaFiles(Protocol):
    """Published files of the media root. Names that begin with a dot are hidden, and no link is followed out of the root."""

    async def find(self, path: str) -> MediaFile | None: ...

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        """List all files below the folder, by path. Return at most `limit` + 1, so that the caller knows if there are more."""
        ...

    async def read(self, path: str, *, limit: int) -> bytes | None:
        """Return the content of a file, or None if it does not exist. Raise `ValueError` if it has more than `limit` bytes."""
        ...

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        """Replace the content of a file atomically. Return False and leave the file unchanged if it is not the file `only` any
        more."""
        ...

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        """Remove a file. Do nothing if it does not exist, or if it is not the file `only` any more."""
        ...


def is_published_path(path: str) -> bool:
    """Return True if a published file can have this path: names separated by slashes, none of which begins with a dot."""
    return all(map(_is_published_name, path.split("/")))


def _is_published_name(name: str) -> bool:
    if not name or name.startswith(".") or "\0" in name:
        return False
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # a lone surrogate, which no store can keep
        return False
