"""The files of the items of playlists: films of Events, paths below the media root, and URLs. The adapter of `ItemFiles`."""

from __future__ import annotations

import asyncio
import os
import re
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
from domain.kernel.errors import Malformed, Refused, Unavailable
from domain.kernel.media_files import MediaFiles
from domain.kernel.stream_time import StreamPoint, stream_point
from domain.media_event.ports import EventLookup
from domain.media_event.stream_start import stream_start
from projections.kernel.background_task import TRANSIENT
from workers.adapters.below_root import NotThere, opened_below
from workers.adapters.item_cache import Fetch, ItemCache
from workers.playout_ports import OpenedItem, Unplayable
from workers.ports import Download, MediaSource

_URL: Final = re.compile("https?://", re.IGNORECASE)


@dataclass(frozen=True)
class PlayoutFiles:
    """`root` is where media are on this machine; None where they are in a bucket, which `source` reads then."""

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
            descriptor = await self.cache.open(item.value, partial(self._downloaded, item.value), within=within)
        else:
            descriptor = await self._media(_path(item.value), within=within)
        return OpenedItem(descriptor, start, end)

    def expect(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.type is ItemType.DIRECT_FULL_MP4 and _URL.match(item.value):
                self.cache.expect(item.value, partial(self._downloaded, item.value))

    async def _media(self, path: str, *, within: float) -> int:
        if self.root is not None:
            try:
                return await asyncio.to_thread(opened_below, self.root, path)
            except NotThere as fault:
                raise Unplayable(f"{str(fault)[0].upper()}{str(fault)[1:]}.") from None
        what, fetch = await self._object(path)
        return await self.cache.open(what, fetch, within=within)

    async def _object(self, path: str) -> tuple[str, Fetch]:
        """What names this version of it, and how it is fetched."""
        try:
            found = await self.source.open(path)
        except (Unavailable, OSError):
            raise Unplayable("The bucket of the media does not answer.") from None
        if found is None:
            raise Unplayable("There is no such file among the media.")
        await found.close()
        return f"{path}\0{found.etag}", partial(self._copied, path)

    async def _copied(self, path: str, to: Path, most: int) -> None:
        found = await self.source.open(path)
        if found is None:
            raise Unplayable("There is no such file among the media.")
        try:
            if found.file.size > most:
                raise Unplayable(f"Its file has more than {most} bytes.")
            with BufferedWriter(FileIO(_made(to), "wb")) as file:  # its close waits for a thread that still writes
                async for piece in found.read(0, found.file.size):
                    await asyncio.to_thread(file.write, piece)
        finally:
            await found.close()

    async def _downloaded(self, url: str, to: Path, most: int) -> None:
        os.close(_made(to))
        answer = await self.download.download(url, to, most=most)
        if answer.status != 200:
            raise Unplayable(f"Its host answers with status {answer.status}.")

    async def _trims(self, item: Item) -> tuple[float, float | None]:
        """In seconds from the beginning of the film."""
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
        """Only the film of an Event carries a timecode."""
        if item.type is not ItemType.EVENT:
            return None
        try:
            event = await self.events.by_id(_event_id(item))
            return None if event is None else await stream_start(self.files, event)
        except (*TRANSIENT, OSError):
            raise Unplayable("When its stream began cannot be read now.") from None


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
        raise Unplayable("It names no Event.") from None


def _path(value: str) -> str:
    """Below the media root."""
    if "://" in value:
        raise Unplayable("Only URLs that begin with http:// or https:// can be fetched.")
    return value


def _made(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
