"""Use cases of `metadata.json`: show it, and adopt its data about the files of an Event: docs/reference/api/vod.md."""

from __future__ import annotations

from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.asset_sync import AssetSync
from domain.event.checks import check_has_metadata
from domain.event.metadata_file import LARGEST, NAME, BrokenMetadata, Metadata, parsed
from domain.event.ports import EventLookup
from domain.event.values import VodFile
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor, Invocation, Outcome


class VodMetadataHandlers:
    """Reads the metadata of an Event's files, and adopts them."""

    def __init__(self, executor: Executor, events: EventLookup, *, files: MediaFiles, assets: AssetSync) -> None:
        self._executor = executor
        self._events = events
        self._files = files
        self._assets = assets

    async def sync_metadata(self, key: UUID, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Adopt the data of the file. Raises `Malformed` for an unknown Event and for a state without metadata, `Refused` if the
        file is missing or broken."""
        event = await self._events.by_id(key)
        if event is None:
            raise Malformed.at("id", "there is no such Event")
        check_has_metadata(event.details.state)
        invocation.check_version(event.version)
        metadata = await self._read(key)
        if metadata is None:
            raise Refused(f"the Event has no {NAME}")
        mp4 = await self._files.find(f"{key}/{key}.mp4")
        size, modified = (mp4.size, mp4.modified) if mp4 is not None else (None, None)
        file = VodFile(duration=metadata.duration, size=size, modified=modified)
        available = mp4 is not None or f"{key}.mp4" in metadata.names
        command = MediaEvent.sync_vod_metadata.on(key, file, available=available)
        try:
            outcome = await self._executor.execute(command, invocation=invocation)
        except NotFound:  # it was deleted meanwhile
            raise Malformed.at("id", "there is no such Event") from None
        await self._assets.run(key, invocation=invocation)
        return outcome

    async def metadata(self, key: UUID) -> bytes:
        """Return the JSON of the file. Raises `NotFound` for an unknown Event and for a missing file, `Refused` for a broken
        file."""
        event = await self._events.by_id(key)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(key))
        metadata = await self._read(key)
        if metadata is None:
            raise NotFound("metadata", str(key), sentence=f"The Event {key} has no {NAME}.")
        return metadata.text

    async def _read(self, key: UUID) -> Metadata | None:
        """Read the file; None if there is none."""
        try:
            text = await self._files.read(f"{key}/{NAME}", limit=LARGEST)
        except ValueError:
            raise BrokenMetadata(f"has more than {LARGEST} bytes") from None
        return None if text is None else parsed(text, content_id=str(key))
