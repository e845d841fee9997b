"""How far uploads of publications have come: one row for each, which belongs to one run of a job at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from projections.kernel.database import Database

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
    """A later run has this upload."""


class UploadStates:
    """The states that targets save. `run` is that of the task `job` has for the upload."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, publication: UUID, *, job: int, run: int) -> Mapping[str, Any] | None:
        """What earlier runs have saved; from now on only this one saves. Raises `UploadTaken`."""
        row = await self._database.row(_TAKE, (publication, job, run))
        if row is None:
            raise UploadTaken
        state: Mapping[str, Any] | None = row[0]
        return state

    async def save(self, publication: UUID, state: Mapping[str, Any], *, job: int, run: int) -> None:
        """Raises `UploadTaken`."""
        if not await self._database.execute(_SAVE, (Jsonb(dict(state)), publication, job, run)):
            raise UploadTaken

    async def forget(self, job: int) -> None:
        """The job has ended, and its uploads are whole."""
        await self._database.execute("DELETE FROM publication_uploads WHERE job = %s", (job,))
