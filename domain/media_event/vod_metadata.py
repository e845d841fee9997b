"""`metadata.json`: what the packager says of the files of an Event, and what the Event takes over: docs/reference/api/vod.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final
from uuid import UUID

from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor, Invocation, Outcome
from domain.kernel.strict_json import NotStrict, strict_json
from domain.media_event.aggregate import MediaEvent, check_has_metadata
from domain.media_event.asset_sync import AssetSync
from domain.media_event.commands import SyncVodMetadata
from domain.media_event.ports import EventLookup
from domain.media_event.values import VodFile

NAME: Final = "metadata.json"
LARGEST: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Metadata:
    """A checked file: `text` is the JSON as it lies there, `names` the files that it lists."""

    text: bytes
    duration: float
    names: Sequence[str]


class BrokenMetadata(Refused):
    """There is a file, and it is not what it should be."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{NAME} of the Event {fault}")


class VodMetadataHandlers:
    """Reads the metadata of an Event's files, and takes them over."""

    def __init__(self, executor: Executor, events: EventLookup, *, files: MediaFiles, assets: AssetSync) -> None:
        self._executor = executor
        self._events = events
        self._files = files
        self._assets = assets

    async def sync_metadata(self, key: UUID, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Take over what the file says. Raises `Malformed` for an unknown Event and for a state without metadata, `Refused` where
        the file is missing or broken."""
        event = await self._events.by_id(key)
        if event is None:
            raise Malformed.at("id", "there is no such Event")
        check_has_metadata(event.details.state)
        metadata = await self._read(key)
        if metadata is None:
            raise Refused(f"the Event has no {NAME}")
        mp4 = await self._files.find(f"{key}/{key}.mp4")
        size, modified = (mp4.size, mp4.modified) if mp4 is not None else (None, None)
        file = VodFile(duration=metadata.duration, size=size, modified=modified)
        available = mp4 is not None or f"{key}.mp4" in metadata.names
        outcome = await self._executor.execute(SyncVodMetadata(key, file, available=available), invocation=invocation)
        await self._assets.run(key, invocation=invocation)
        return outcome

    async def metadata(self, key: UUID) -> bytes:
        """The JSON of the file. Raises `NotFound` for an unknown Event and without a file, `Refused` for a broken file."""
        event = await self._events.by_id(key)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(key))
        metadata = await self._read(key)
        if metadata is None:
            raise NotFound("metadata", str(key), sentence=f"The Event {key} has no {NAME}.")
        return metadata.text

    async def _read(self, key: UUID) -> Metadata | None:
        """None: there is no file."""
        try:
            found = await self._files.read(f"{key}/{NAME}", limit=LARGEST)
        except ValueError:
            raise BrokenMetadata(f"has more than {LARGEST} bytes") from None
        return None if found is None else parsed(found, content_id=str(key))


def parsed(text: bytes, *, content_id: str) -> Metadata:
    """Raises `BrokenMetadata`."""
    try:
        document = strict_json(text)
    except NotStrict as error:
        raise BrokenMetadata(error.message) from None
    if not isinstance(document, dict):
        raise BrokenMetadata("is not an object")
    if document.get("contentId") != content_id:
        raise BrokenMetadata("has the contentId of other content, or none")
    duration = document.get("duration")
    if not isinstance(duration, int | float) or isinstance(duration, bool) or not duration >= 0 or not isfinite(duration):
        raise BrokenMetadata("has no duration: a number of seconds from 0")
    files = document.get("files")
    if not isinstance(files, list):
        raise BrokenMetadata("has no files: an array")
    for index, file in enumerate(files):
        fault = _fault(file)
        if fault is not None:
            raise BrokenMetadata(f"is wrong at files[{index}]: {fault}")
    return Metadata(text, float(duration), [file["name"] for file in files])


def _fault(file: Any) -> str | None:
    if not isinstance(file, dict):
        return "must be an object"
    name, size = file.get("name"), file.get("size")
    if not isinstance(name, str) or not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        return "the name must be a path below the folder of the content"
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return "the size must be a whole number from 0"
    return None
