"""Synchronisation of the assets of an Event with the files of its content."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from domain.kernel.errors import Refused
from domain.kernel.ports import Invocation, ServiceNotes


class SyncAssets(Protocol):
    """Makes the assets of an Event agree with the files of its content. Raises `Refused` if that cannot be done."""

    async def __call__(self, event_id: UUID, *, invocation: Invocation) -> object: ...


class AssetSync:
    """Synchronises assets after a change of files. A refusal, such as for a folder with too many files, does not undo the
    change; it is written to the log store."""

    def __init__(self, sync: SyncAssets, notes: ServiceNotes) -> None:
        self._sync = sync
        self._notes = notes

    async def run(self, event_id: UUID, *, invocation: Invocation) -> None:
        """Synchronise without the conditions of the invocation, which belong to the previous append."""
        try:
            await self._sync(event_id, invocation=Invocation(invocation.cause))
        except Refused as refused:
            await self._notes.warn(f"The assets were not synchronised: {refused.rule}", subject=str(event_id))
