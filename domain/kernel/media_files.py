"""Published files of the media root, as a port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

_LONGEST_NAME: Final = 255
"""Bytes: the limit of Linux for the name of a file."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """`path` is relative to the media root, with slashes; `modified` is the time of the last change."""

    path: str
    size: int
    modified: datetime


class MediaFiles(Protocol):
    """Published files of the media root. Names that begin with a dot are not there; no link is followed out of the root."""

    async def find(self, path: str) -> MediaFile | None: ...

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        """All files below the folder, by path; at most `limit` + 1, so that the caller knows whether there are more."""
        ...

    async def read(self, path: str, *, limit: int) -> bytes | None:
        """None: it is not there. Raises `ValueError` when it has more than `limit` bytes."""
        ...

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        """Put another content in the place of a file, at once. False: it is not the file `only` any more, and stays as it is."""
        ...

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        """Nothing happens when it is not there, nor when it is not the file `only` any more."""
        ...


def is_published_path(path: str) -> bool:
    """Whether a file of this path can be there: names with slashes between them, none of which begins with a dot."""
    return all(map(_is_published_name, path.split("/")))


def _is_published_name(name: str) -> bool:
    if not name or name.startswith(".") or "\0" in name:
        return False
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # a lone surrogate, which no store can keep
        return False
