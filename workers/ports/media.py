"""Programs and files of media, as callers need them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from domain.kernel.media_files import MediaFile


class Transcoder(Protocol):
    """Cuts and converts media."""

    async def check(self) -> str | None:
        """Return why it cannot be run, in words that name no host, path or secret; None if it can."""
        ...


class OpenMedia(Protocol):
    """A published file that is open for reading. All bytes are of one version, even if the file is replaced meanwhile."""

    file: MediaFile
    etag: str
    """The entity tag of this version, without quotes."""

    def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes in pieces. Raise `Unavailable` or `OSError` if the rest cannot be read."""
        ...

    async def close(self) -> None: ...


class MediaSource(Protocol):
    """Reads published files of any size. It is a `MediaFiles` with more methods."""

    async def open(self, path: str) -> OpenMedia | None:
        """Open a published file; None if it does not exist."""
        ...
