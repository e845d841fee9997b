"""Published files in a bucket: the adapter of `MediaFiles` and `MediaSource` without a shared directory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from domain.kernel.media_files import MediaFile, is_published_path
from workers.ports.buckets import ObjectStore, StoredObject

_LONGEST_KEY = 1024
"""S3's limit for a key in bytes."""


class MediaBucket:
    """Stores each file as an object under its path."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def find(self, path: str) -> MediaFile | None:
        stored = await self._head(path)
        return None if stored is None else _file(stored)

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        if folder and not _can_be_there(folder):
            return ()
        prefix, files, after = f"{folder}/" if folder else "", list[MediaFile](), ""
        while len(files) <= limit:
            page = await self._store.list(prefix, limit=limit + 1, after=after)
            if not page:
                break
            files += [_file(each) for each in page if is_published_path(each.key)]
            after = _behind_hidden(page[-1].key)
        return files[: limit + 1]

    async def read(self, path: str, *, limit: int) -> bytes | None:
        if not _can_be_there(path):
            return None
        content = await self._store.get(path, limit=limit)
        return None if content is None else content[0]

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        stored = await self._head(only.path)
        if stored is None or _file(stored) != only:
            return False
        return await self._store.put(only.path, content, instead_of=stored.etag)

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        if _can_be_there(path) and (only is None or await self.find(path) == only):
            await self._store.delete([path])

    async def open(self, path: str) -> OpenObject | None:
        stored = await self._head(path)
        return None if stored is None else OpenObject(self._store, stored)

    async def _head(self, path: str) -> StoredObject | None:
        return await self._store.head(path) if _can_be_there(path) else None


class OpenObject:
    """A version of an object."""

    def __init__(self, store: ObjectStore, stored: StoredObject) -> None:
        self._store = store
        self._stored = stored
        self.file = _file(stored)
        self.etag = stored.etag.strip('"')

    def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        return self._store.pieces(self._stored.key, etag=self._stored.etag, start=start, size=size)

    async def close(self) -> None:
        return


def _can_be_there(path: str) -> bool:
    return is_published_path(path) and len(path.encode()) <= _LONGEST_KEY


def _behind_hidden(key: str) -> str:
    """Return where the next page begins: after the whole folder of a name that begins with a dot, whatever it contains."""
    names = key.split("/")
    depth = next((depth for depth, name in enumerate(names, 1) if name.startswith(".")), len(names))
    return key if depth == len(names) else "/".join(names[:depth]) + "/\U0010ffff"


def _file(stored: StoredObject) -> MediaFile:
    return MediaFile(stored.key, stored.size, stored.modified)
