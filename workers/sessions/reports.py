"""Reports: what sessions tell the log, in order, each until it is told. A session never waits for them."""

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
    """While the database does not answer they wait. One that is refused is left out."""

    WHAT: ClassVar[str] = "reports of sessions"

    def __init__(self) -> None:
        self._left: deque[Report] = deque()
        self._added = asyncio.Event()
        self._none_left = asyncio.Event()
        self._none_left.set()
        self._going = asyncio.Event()
        self._going.set()

    @property
    def left(self) -> int:
        return len(self._left)

    def pause(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    def add(self, report: Report) -> None:
        self._left.append(report)
        self._none_left.clear()
        self._added.set()

    async def stop(self) -> None:
        """What is left is told first, if the database answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_DRAIN):
                await self._none_left.wait()
        await super().stop()

    async def _turn(self) -> None:
        self._added.clear()
        if not self._left:
            self._none_left.set()
            await self._added.wait()
            return
        await self._going.wait()
        try:
            await self._left[0]()
        except Unavailable:
            raise
        except DomainError as refusal:
            _log.warning("a report of a session was refused: %s", refusal)
        self._left.popleft()
