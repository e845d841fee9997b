"""The progress of a run in the log store: one entry about each Event that waits for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from domain.kernel.errors import Unavailable
from projections.logbook.logbook import Level, Logbook

_log = logging.getLogger(__name__)


class RunProgress:
    """Writes progress entries about these subjects. An entry that cannot be stored does not stop the run."""

    def __init__(self, logbook: Logbook, subjects: Sequence[str]) -> None:
        self._logbook = logbook
        self._subjects = subjects

    async def info(self, message: str) -> None:
        await self._note(Level.INFO, message)

    async def _note(self, level: Level, message: str) -> None:
        for subject in self._subjects:
            try:
                await self._logbook.note(level, message, subject=subject)
            except Unavailable as fault:
                _log.warning("%s (about %s; not in the log store: %s)", message, subject, fault)
