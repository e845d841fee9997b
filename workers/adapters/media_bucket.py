"""Published files in a bucket: the adapter of `MediaFiles` and `MediaSource` without a shared directory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from domain.kernel.media_files import MediaFile, is_published_path
from workers.bucket_ports import ObjectStore, StoredObject

_LONGEST_KEY = 1024
"""Bytes that S3 allows."""


class MediaBucket:
    """Each file is an object under its path."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def find(self, path: str) -> MediaFile | None:
        found = await self._head(path)
        return None if found is None else _file(found)

    async def list(self, folder: str, *, limit: int) -> Sequence[MediaFile]:
        if folder and not _can_be_there(folder):
            return ()
        prefix, found, after = f"{folder}/" if folder else "", list[MediaFile](), ""
        while len(found) <= limit:
            page = await self._store.list(prefix, limit=limit + 1, after=after)
            if not page:
                break
            found += [_file(each) for each in page if is_published_path(each.key)]
            after = _behind_hidden(page[-1].key)
        return found[: limit + 1]

    async def read(self, path: str, *, limit: int) -> bytes | None:
        if not _can_be_there(path):
            return None
        found = await self._store.get(path, limit=limit)
        return None if found is None else found[0]

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        found = await self._head(only.path)
        if found is None or _file(found) != only:
            return False
        return await self._store.put(only.path, content, instead_of=found.etag)

    async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
        if _can_be_there(path) and (only is None or await self.find(path) == only):
            await self._store.delete([path])

    async def open(self, path: str) -> OpenObject | None:
        found = await self._head(path)
        return None if found is None else OpenObject(self._store, found)

    async def _head(self, path: str) -> StoredObject | None:
        return await self._store.head(path) if _can_be_there(path) else None


class OpenObject:
    """One version of an object."""

    def __init__(self, store: ObjectStore, found: StoredObject) -> None:
        self._store = store
        self._found = found
        self.file = _file(found)
        self.etag = found.etag.strip('"')

    def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        return self._store.pieces(self._found.key, etag=self._found.etag, start=start, size=size)

    async def close(self) -> None:
        return


def _can_be_there(path: str) -> bool:
    return is_published_path(path) and len(path.encode()) <= _LONGEST_KEY


def _behind_hidden(key: str) -> str:
    """Where the next page begins: behind the whole folder of a name that begins with a dot, however much is in it."""
    names = key.split("/")
    depth = next((depth for depth, name in enumerate(names, 1) if name.startswith(".")), len(names))
    return key if depth == len(names) else "/".join(names[:depth]) + "/\U0010ffff"


def _file(found: StoredObject) -> MediaFile:
    return MediaFile(found.key, found.size, found.modified)
