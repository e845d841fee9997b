"""Use cases of all simple resources: register, amend and delete records of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.event.ports import EventLookup
from domain.kernel.command import Command, Key
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import ClaimTaken, Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.record.kinds.archiver_stream import ArchiverStream, check_times
from domain.record.kinds.custom_property import CustomProperty
from domain.record.kinds.playlist import Playlist
from domain.record.kinds.playlist_item import PlaylistItem
from domain.record.kinds.tag import Tag
from domain.record.ports import Numbers, RecordLookup, RecordReader
from domain.record.record import D, Record, RegisterRecord


class PlaylistHandlers:
    """Adds and deletes the items of playlists. Playlists themselves need no more than `RecordHandlers`."""

    def __init__(self, executor: Executor, records: RecordLookup, *, events: EventLookup) -> None:
        self._executor = executor
        self._records = records
        self._events = events

    async def add_item(self, playlist: UUID, event: UUID, *, start_time: datetime, invocation: Invocation) -> Outcome[Record]:
        """Add an Event to a playlist. It may be in the playlist several times."""
        if await self._events.by_id(event) is None:
            raise Malformed.at("eventId", "there is no such event")
        if await self._records.find(Playlist, playlist) is None:
            raise NotFound(Playlist.KIND, str(playlist))
        values = {"playlist_id": playlist, "event_id": event, "start_time": start_time}
        return await self._executor.execute(RegisterRecord(new_id(), PlaylistItem, values, new=True), invocation=invocation)

    async def delete_item(self, playlist: UUID, item: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Delete an item. Items never move to another playlist, so the look-up stays true until the append."""
        row = await self._records.find(PlaylistItem, item)
        if row is None or row.details.playlist_id != playlist:
            raise NotFound(PlaylistItem.KIND, str(item))
        return await self._executor.execute(PlaylistItem.delete.on(item), invocation=invocation)


class TagHandlers:
    """Adds and renames tags. A name belongs to one tag only."""

    def __init__(self, executor: Executor, records: RecordLookup) -> None:
        self._executor = executor
        self._records = records

    async def add_or_rename(self, key: UUID | None, name: str, *, invocation: Invocation) -> Outcome[Record]:
        """Add or rename the tag with this key. Without a key, return the tag that has the name, or add one."""
        if key is not None:
            return await self._executor.execute(RegisterRecord(key, Tag, {"name": name}), invocation=invocation)
        new_key = new_id()

        async def plan() -> Plan:
            tag = (await self._records.named(Tag, [name])).get(name)
            if tag is None:
                return Plan((RegisterRecord(new_key, Tag, {"name": name}, new=True),))
            return Plan((Tag.amend.on(tag.id, {}, still={"name": name}).as_planned(),))

        return await self._executor.execute(plan, invocation=invocation)


class ArchiverStreamHandlers:
    """Adds and changes archiver streams, whose keys are numbers."""

    def __init__(self, executor: Executor, numbers: Numbers) -> None:
        self._executor = executor
        self._numbers = numbers

    async def add(self, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        command = RegisterRecord(await self._numbers.draw(), ArchiverStream, values, new=True)
        return await self._executor.execute(command, invocation=invocation)

    async def change(self, key: int, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        """Change an archiver stream. Invalid times are reported before a missing stream."""
        check_times(values.get("start_time"), values.get("end_time"))
        return await self._executor.execute(ArchiverStream.amend.on(key, values), invocation=invocation)


class RecordHandlers:
    """Registers and amends records, and deletes those that own others. `unique_field` names the field of a 400 if its value
    belongs to another record. Without it, that is a conflict."""

    def __init__(self, executor: Executor, records: RecordReader) -> None:
        self._executor = executor
        self._records = records

    async def register(
        self,
        kind: type[Record[D]],
        values: Mapping[str, Any],
        *,
        invocation: Invocation,
        key: Key | None = None,
        sealed: Sequence[EncryptedSecret] = (),
        unique_field: str | None = None,
    ) -> Outcome[Record[D]]:
        """Add a record or, with a `key`, add or change the record with this key."""
        command = RegisterRecord(key or new_id(), kind, values, new=key is None, sealed=sealed)
        return await self._execute(command, invocation, unique_field=unique_field)

    async def amend(
        self,
        kind: type[Record[D]],
        key: Key,
        *,
        values: Mapping[str, Any],
        invocation: Invocation,
        sealed: Sequence[EncryptedSecret] = (),
        unique_field: str | None = None,
    ) -> Outcome[Record[D]]:
        """Change the fields that `values` names."""
        return await self._execute(kind.amend.on(key, values).with_secrets(sealed), invocation, unique_field=unique_field)

    async def delete_with_properties(
        self, kind: type[Record], key: Key, *, properties: type[CustomProperty], invocation: Invocation
    ) -> Outcome[Record]:
        """Delete the record and its custom properties, which come first in the outcome."""

        async def plan() -> Plan:
            owned = (await self._records.of_owners(properties, [key])).get(str(key), ())
            return Plan((*(properties.delete.on(row.id).as_planned() for row in owned), kind.delete.on(key)))

        return await self._executor.execute(plan, invocation=invocation)

    async def _execute(self, command: Command[Any], invocation: Invocation, *, unique_field: str | None) -> Outcome[Record[D]]:
        try:
            return await self._executor.execute(command, invocation=invocation)
        except ClaimTaken:
            if unique_field is None:
                raise
            raise Malformed.at(unique_field, f"is already used by another {command.kind().KIND.replace('_', ' ')}") from None
