"""Deletes the files of removed assets.

An asset is removed in the log first. A run of its job that is still in progress may publish the file until its folder is gone, so
the folders of its jobs are deleted before the file. Then its path is free for another asset. If a process dies in between, the next
turn does the rest: the row of the asset says that its file remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import ClassVar, Final, cast
from uuid import UUID

from domain.asset.aggregate import Asset
from domain.asset.file_names import caption_parts
from domain.asset.values import AssetType
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor, Invocation
from projections.asset.queries import AssetQueries
from projections.kernel.background_task import BackgroundTask
from projections.log.streams import Streams
from workers.kernel.wakeups import Waker

_AT_ONCE: Final = 100
_POLL: Final = 10.0

Agree = Callable[[UUID], Awaitable[None]]
"""Makes the packages of an Event name its captions, and no others."""
RemoveJobFolders = Callable[[Collection[int]], Awaitable[None]]


class AssetFileRemoval(BackgroundTask):
    """The background task that deletes the files. `remove_folders` deletes the folders of jobs, so that no run of them publishes
    anything more."""

    WHAT: ClassVar[str] = "removal of files of assets"

    def __init__(
        self,
        assets: AssetQueries,
        executor: Executor,
        *,
        streams: Streams,
        files: MediaFiles,
        remove_folders: RemoveJobFolders,
        agree: Agree,
        waker: Waker,
    ) -> None:
        self._assets = assets
        self._executor = executor
        self._streams = streams
        self._files = files
        self._remove_folders = remove_folders
        self._agree = agree
        self._waker = waker

    async def _turn(self) -> None:
        if await self.remove() < _AT_ONCE:
            await self._waker.sleep(_POLL)

    async def remove(self) -> int:
        """Remove files, and return the number of files that were to be removed."""
        keys = await self._assets.with_files_left(limit=_AT_ONCE)
        for ended in await asyncio.gather(*map(self._remove_one, keys), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
        return len(keys)

    async def _remove_one(self, key: UUID) -> None:
        asset = await self._with_file_left(key)
        if asset is None:
            return  # another process has done it
        await self._remove_folders(asset.jobs)
        if asset.type is AssetType.CAPTION:
            await self._agree(asset.event_id)
            for path in caption_parts(asset.path):
                await self._files.remove(path)
        file = await self._files.find(asset.path)
        if await self._with_file_left(key) is None:
            return  # another process was faster: the file at the path may belong to the next asset
        if file is not None:
            await self._files.remove(asset.path, only=file)
        await self._executor.execute(Asset.release_path.on(key), invocation=Invocation.by("system"))

    async def _with_file_left(self, key: UUID) -> Asset | None:
        asset = cast("Asset | None", await self._streams.load(Asset.stream(key)))
        return asset if asset is not None and asset.removed and asset.holds_path else None
