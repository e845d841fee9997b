"""An in-memory twin of the published files of the media root."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from domain.kernel.media_files import MediaFile, is_published_path

MODIFIED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class MemoryMediaFiles:
    """Files by their paths. `put` is what a job does when it publishes."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, datetime]] = {}

    def put(self, path: str, content: bytes, *, modified: datetime = MODIFIED) -> None:
        self._files[path] = (content, modified)

    async def find(self, path: str) -> MediaFile | None:
        if path not in self._files or not is_published_path(path):
            return None
        content, modified = self._files[path]
        return MediaFile(path, len(content), modified)

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        inside = f"{folder}/" if folder else ""
        matches = [await self.find(path) for path in sorted(self._files) if path.startswith(inside)]
        return [file for file in matches if file is not None][: limit + 1]

    async def read(self, path: str, *, limit: int) -> bytes | None:
        if await self.find(path) is None:
            return None
        content, _ = self._files[path]
        if len(content) > limit:
            raise ValueError(f"{path} has more than {limit} bytes")
        return content

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        if await self.find(only.path) != only:
            return False
        self.put(only.path, content, modified=only.modified)
        return True

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        if is_published_path(path) and only in (None, await self.find(path)):
            self._files.pop(path, None)
