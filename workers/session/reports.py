"""Reports: what sessions write to the log, in order, each repeated until it is written. A session never waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, Final

from domain.kernel.errors import DomainError, Unavailable
from projections.kernel.background_task import BackgroundTask

Report = Callable[[], Awaitable[object]]
_LONGEST_DRAIN: Final = 5.0

_log = logging.getLogger(__name__)


class Reports(BackgroundTask):
    """The queue of reports. They wait while the database does not answer. A report that is refused is dropped."""

    WHAT: ClassVar[str] = "reports of sessions"

    def __init__(self) -> None:
        self._pending: deque[Report] = deque()
        self._added = asyncio.Event()
        self._none_pending = asyncio.Event()
        self._none_pending.set()
        self._going = asyncio.Event()
        self._going.set()

    @property
    def pending(self) -> int:
        return len(self._pending)

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def add(self, report: Report) -> None:
        self._pending.append(report)
        self._none_pending.clear()
        self._added.set()

    async def stop(self) -> None:
        """Write the pending reports first, if the database answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_DRAIN):
                await self._none_pending.wait()
        await super().stop()

    async def _turn(self) -> None:
        self._added.clear()
        if not self._pending:
            self._none_pending.set()
            await self._added.wait()
            return
        await self._going.wait()
        try:
            await self._pending[0]()
        except Unavailable:
            raise
        except DomainError as refusal:
            _log.warning("a report of a session was refused: %s", refusal)
        self._pending.popleft()
