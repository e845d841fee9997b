"""A check of the transcoder at the start of workers that need it: a missing program is logged once, before a job fails because of
it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from projections.kernel.background_task import start_task
from workers.kernel.worker import SharedWorker
from workers.ports.media import Transcoder

_log = logging.getLogger(__name__)


class TranscoderCheck(SharedWorker):
    """Checks the transcoder once for all workers of a process. They start without waiting for it: most workflows need no
    transcoder."""

    def __init__(self, transcoder: Transcoder) -> None:
        self._transcoder = transcoder
        self.looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.looking = start_task(self._look(), what="check of the transcoder")

    async def stop(self) -> None:
        if self.looking is not None:
            self.looking.cancel()
            with suppress(asyncio.CancelledError):
                await self.looking

    async def _look(self) -> None:
        fault = await self._transcoder.check()
        if fault is not None:
            _log.warning("Jobs and encoders that need ffmpeg will fail here: %s", fault)
