"""Keeping the assets of an Event in agreement with the files of its content."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from domain.kernel.errors import Refused
from domain.kernel.ports import Invocation, ServiceNotes


class SyncAssets(Protocol):
    """Makes the assets of an Event agree with the files of its content. Raises `Refused` where that cannot be done."""

    async def __call__(self, event_id: UUID, *, invocation: Invocation) -> object: ...


class AssetSync:
    """For those who changed the files, or learnt of a change: what refuses the synchronisation, such as a folder with too many
    files, does not undo their work. It is noted."""

    def __init__(self, sync: SyncAssets, notes: ServiceNotes) -> None:
        self._sync = sync
        self._notes = notes

    async def run(self, event_id: UUID, *, invocation: Invocation) -> None:
        """Without the conditions of the invocation: they are those of the append before."""
        try:
            await self._sync(event_id, invocation=Invocation(invocation.cause))
        except Refused as refused:
            await self._notes.warn(f"The assets were not synchronised: {refused.rule}", subject=str(event_id))
