"""The files of the items of playlists: films of Events, paths below the media root, and URLs. The adapter of `ItemFiles`."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Final
from uuid import UUID

from domain.asset.times import from_start
from domain.composition.values import Item, ItemType
from domain.event.ports import EventLookup
from domain.event.stream_start import stream_start
from domain.kernel.errors import Malformed, Refused, Unavailable
from domain.kernel.media_files import MediaFiles
from domain.kernel.stream_time import StreamPoint, stream_point
from projections.kernel.background_task import TRANSIENT
from workers.adapters.item_cache import Fetch, ItemCache
from workers.ports.media import MediaSource
from workers.ports.outbound import Download
from workers.ports.playout import OpenedItem, Unplayable


class UnusableFile(Exception):
    """Raised when there is no such file. The message is the end of a sentence, without the path."""


def open_below(root: Path, name: str) -> int:
    """Return the descriptor of a regular file. Raises `UnusableFile`."""
    *folders, last = name.split("/")
    if not name or any(not part or part.startswith(".") or "\0" in part for part in (*folders, last)):
        raise UnusableFile("must be the path of a file below the media root")
    folder_descriptor = -1
    try:
        folder_descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_descriptor)
            os.close(folder_descriptor)
            folder_descriptor = inner
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_descriptor)
    except (OSError, ValueError):
        raise UnusableFile("there is no such file that can be read below the media root") from None
    finally:
        if folder_descriptor >= 0:
            os.close(folder_descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnusableFile("it is not a regular file")
    return descriptor


_URL: Final = re.compile("https?://", re.IGNORECASE)


@dataclass(frozen=True)
class PlayoutFiles:
    """Opens the files of items. `root` is the folder of the media; None if they are in a bucket, which `source` reads."""

    root: Path | None
    source: MediaSource
    files: MediaFiles
    events: EventLookup
    download: Download
    cache: ItemCache

    async def open(self, item: Item, *, within: float) -> OpenedItem:
        start, end = await self._trims(item)
        if item.type is ItemType.EVENT:
            descriptor = await self._media(_film(item), within=within)
        elif item.type is not ItemType.DIRECT_FULL_MP4:
            raise Unplayable("Items of its type cannot be played out.")
        elif _URL.match(item.value):
            descriptor = await self.cache.open(item.value, partial(self._download, item.value), within=within)
        else:
            descriptor = await self._media(_path(item.value), within=within)
        return OpenedItem(descriptor, start, end)

    def expect(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.type is ItemType.DIRECT_FULL_MP4 and _URL.match(item.value):
                self.cache.expect(item.value, partial(self._download, item.value))

    async def _media(self, path: str, *, within: float) -> int:
        if self.root is not None:
            try:
                return await asyncio.to_thread(open_below, self.root, path)
            except UnusableFile as fault:
                raise Unplayable(f"{str(fault)[0].upper()}{str(fault)[1:]}.") from None
        what, fetch = await self._object(path)
        return await self.cache.open(what, fetch, within=within)

    async def _object(self, path: str) -> tuple[str, Fetch]:
        """Return a name for this version of the object, and a function that fetches it."""
        try:
            media = await self.source.open(path)
        except (Unavailable, OSError):
            raise Unplayable("The bucket of the media does not answer.") from None
        if media is None:
            raise Unplayable("There is no such file among the media.")
        await media.close()
        return f"{path}\0{media.etag}", partial(self._copy, path)

    async def _copy(self, path: str, to: Path, most: int) -> None:
        media = await self.source.open(path)
        if media is None:
            raise Unplayable("There is no such file among the media.")
        try:
            if media.file.size > most:
                raise Unplayable(f"Its file has more than {most} bytes.")
            with BufferedWriter(FileIO(_create(to), "wb")) as file:  # its close waits for a thread that still writes
                async for piece in media.read(0, media.file.size):
                    await asyncio.to_thread(file.write, piece)
        finally:
            await media.close()

    async def _download(self, url: str, to: Path, most: int) -> None:
        os.close(_create(to))
        answer = await self.download.download(url, to, most=most)
        if answer.status != 200:
            raise Unplayable(f"Its host answers with status {answer.status}.")

    async def _trims(self, item: Item) -> tuple[float, float | None]:
        """Return start and end in seconds from the beginning of the film."""
        try:
            points = [stream_point(text, field=name) for name, text in (("start", item.start), ("end", item.end))]
        except Malformed as refusal:
            raise Unplayable(f"{refusal}.") from None
        begin = await self._stream_start(item) if any(point.is_absolute for point in points) else None
        start, end = (_seconds(point, begin) for point in points)
        if end is not None and end <= (start or 0.0):
            raise Unplayable("Its end is not after its start.")
        return start or 0.0, end

    async def _stream_start(self, item: Item) -> datetime | None:
        """Return the start of the stream. Only the film of an Event has a timecode."""
        if item.type is not ItemType.EVENT:
            return None
        try:
            event = await self.events.by_id(_event_id(item))
            return None if event is None else await stream_start(self.files, event)
        except (*TRANSIENT, OSError):
            raise Unplayable("The start of its stream cannot be read at the moment.") from None


def _seconds(point: StreamPoint, begin: datetime | None) -> float | None:
    if not point.has_value:
        return None
    try:
        return from_start(point, begin).total_seconds()
    except Refused as refusal:
        raise Unplayable(f"{str(refusal)[0].upper()}{str(refusal)[1:]}.") from None


def _film(item: Item) -> str:
    key = _event_id(item)
    return f"{key}/{key}.mp4"


def _event_id(item: Item) -> UUID:
    try:
        return UUID(item.value)
    except ValueError:
        raise Unplayable("Its value is not the id of an Event.") from None


def _path(value: str) -> str:
    """Return a path below the media root."""
    if "://" in value:
        raise Unplayable("Only URLs that begin with http:// or https:// can be fetched.")
    return value


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
