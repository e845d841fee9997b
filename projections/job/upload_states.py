"""The progress of uploads of publications: one row for each, which belongs to one run of a job at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from projections.kernel.database.database import Database

_TAKE: Final = """
INSERT INTO publication_uploads AS u (publication, job, run) VALUES (%s, %s, %s)
ON CONFLICT (publication) DO UPDATE SET job = excluded.job, run = excluded.run, changed_at = now()
    WHERE (u.job, u.run) <= (excluded.job, excluded.run)
RETURNING state
"""
_SAVE: Final = """
UPDATE publication_uploads SET state = %s, changed_at = now() WHERE publication = %s AND job = %s AND run = %s
"""


class UploadTaken(Exception):
    """Raised when a later run has taken over the upload."""


class UploadStates:
    """The states that targets save. `run` is the run of the task that `job` has for the upload."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, publication: UUID, *, job: int, run: int) -> Mapping[str, Any] | None:
        """Take over the upload for this run, and return the state that earlier runs have saved. Raise `UploadTaken` if a later run
        has it."""
        row = await self._database.row(_TAKE, (publication, job, run))
        if row is None:
            raise UploadTaken
        state: Mapping[str, Any] | None = row[0]
        return state

    async def save(self, publication: UUID, state: Mapping[str, Any], *, job: int, run: int) -> None:
        """Save the state of the upload. Raise `UploadTaken` if another run has it."""
        if not await self._database.execute(_SAVE, (Jsonb(dict(state)), publication, job, run)):
            raise UploadTaken

    async def forget(self, job: int) -> None:
        """Delete the states of a job that has ended and whose uploads are complete."""
        await self._database.execute("DELETE FROM publication_uploads WHERE job = %s", (job,))
