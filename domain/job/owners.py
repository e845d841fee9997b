"""The owners of jobs of all rooms, combined into one port."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from domain.job.ports import CheckedJob, JobOwners, OwnedJob
from domain.kernel.command import Command


class OwnersOfRooms:
    """The port `JobOwners`. Each room knows its own workflows and its own owners."""

    def __init__(self, *rooms: JobOwners) -> None:
        self._rooms = rooms

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        for room in self._rooms:
            if (owned := await room.of(job, run_at=run_at)) is not None:
                return owned
        return None

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        per_room = (room.accepted(job, number, owner=owner, rerun_of=rerun_of, version=version) for room in self._rooms)
        return [command for commands in per_room for command in commands]
