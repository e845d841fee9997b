"""The sources of `medialedger media ingest`. They are stored below the media root, where steps can read them, until their job has
ended."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from api.wiring.settings import Settings
from projections.kernel.sizes import MIB
from workers.job import folders
from workers.job.media_paths import segment_fault

if TYPE_CHECKING:
    from workers.ports.buckets import ObjectStore


_INCOMING: Final = "incoming"
_PART: Final = 64 * MIB
"""The bytes of a part of an upload, which has at most 10,000 parts."""


async def bring_in(file: Path, settings: Settings, *, event: UUID) -> str:
    """Return the path below the media root: of the file itself if it is stored there, else of a copy."""
    name = file.name if segment_fault(file.name) is None else "source"
    store = _store(settings)
    if store is None:
        return str(await asyncio.to_thread(_copy, file, settings.media_directory, event, name))
    key = f"{_INCOMING}/{event}/{name}"
    await _upload(store, key, file)
    return key


async def remove(path: str, settings: Settings, *, event: UUID) -> None:
    """Delete the copy. A file that was below the media root before stays."""
    store = _store(settings)
    if store is not None:
        await store.delete([path])
    else:
        await asyncio.to_thread(folders.remove, settings.media_directory, (_INCOMING, str(event)))


def _store(settings: Settings) -> ObjectStore | None:
    if settings.media_bucket is None:
        return None
    from workers.adapters.s3_bucket import S3Bucket

    return S3Bucket(settings.media_bucket)


async def _upload(store: ObjectStore, key: str, file: Path) -> None:
    upload, tags = await store.begin_upload(key, sha256=""), list[str]()
    try:
        with file.open("rb") as source:
            while (content := await asyncio.to_thread(source.read, _PART)) or not tags:
                tags.append(await store.upload_part(key, upload, number=len(tags) + 1, content=content))
        await store.complete_upload(key, upload, parts=tags)
    except BaseException:
        await store.end_upload(key, upload)
        raise


def _copy(file: Path, root: Path, event: UUID, name: str) -> Path:
    inside = file.resolve()
    if inside.is_relative_to(root.resolve()):
        return inside.relative_to(root.resolve())
    with folders.folder(root, (_INCOMING, str(event)), make=True) as place:
        copy = os.open(name, folders.NEW_FILE, 0o600, dir_fd=place)
        with file.open("rb") as original, open(copy, "wb") as made:
            shutil.copyfileobj(original, made, 1_048_576)
            folders.open_to_group(copy, os.stat(root).st_gid)
    return Path(_INCOMING, str(event), name)
