"""The feed of a broker that is replaced by the log while the broker delivers nothing.

Positions are the same on both, so a reader switches between them without a loss or a repeat.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Final, Protocol

from projections.kernel.background_task import TRANSIENT, start_task
from projections.log.log_watcher import LogWatcher
from workers.kernel.feed import LIMIT, Batch, Feed

PATIENCE: Final = 5.0
"""Seconds for which a broker may deliver nothing."""
_PAUSE: Final = 0.5
"""Seconds between a fault of the broker and the next attempt."""
_LOOK: Final = 2.0
"""Seconds between two checks if the broker is back."""
_log = logging.getLogger(__name__)


class BrokerFeed(Feed, Protocol):
    """The access of one reader to the log through a broker."""

    async def holds(self, after: int) -> bool:
        """Return True if the broker answers and has the log up to this position. Raise `Unavailable`."""
        ...


class FallbackFeed:
    """Reads a broker, and the log instead when the broker has failed for `patience` seconds, or has delivered nothing for so long
    although the log has grown. `name` is the reader in the messages of the process about such changes; None for no messages."""

    def __init__(
        self,
        broker: BrokerFeed,
        log: Feed,
        *,
        log_watcher: LogWatcher,
        name: str | None = None,
        patience: float = PATIENCE,
        look: float = _LOOK,
    ) -> None:
        self.reads_log_since: float | None = None
        self._broker = broker
        self._log = log
        self._log_watcher = log_watcher
        self._name = name
        self._patience = patience
        self._look = look
        self._stalled_since: float | None = None
        self._after = 0
        self._return: asyncio.Task[None] | None = None

    async def fetch(self, after: int, *, limit: int = LIMIT) -> Batch:
        self._after = after
        if self._return is not None and self._return.done():
            self._go_back()
        if self.reads_log_since is None:
            batch = await self._from_broker(after, limit)
            if batch is not None:
                return batch
        return await self._log.fetch(after, limit=limit)

    async def close(self) -> None:
        if self._return is not None:
            self._return.cancel()
            await asyncio.wait({self._return})
        self._return = self.reads_log_since = self._stalled_since = None
        await self._broker.close()
        await self._log.close()

    async def _from_broker(self, after: int, limit: int) -> Batch | None:
        """Return a batch from the broker; None if it has delivered nothing for too long."""
        begun, reason = time.monotonic(), "it delivers nothing, although the log grows"
        batch, failed = Batch((), after), False
        try:
            async with asyncio.timeout(self._remaining(begun)):
                batch = await self._broker.fetch(after, limit=limit)
        except TRANSIENT as fault:
            failed, reason = True, str(fault) or "it does not answer"
        if batch.through > after or (await self._ends_at(after) and not failed):
            self._stalled_since = None
            return batch
        self._stalled_since = begun if self._stalled_since is None else self._stalled_since
        if remaining := self._remaining(time.monotonic()):
            if failed:
                await asyncio.sleep(min(_PAUSE, remaining))
            return batch
        self._read_log(reason)
        return None

    def _remaining(self, now: float) -> float:
        """Return the number of seconds for which the broker may still deliver nothing."""
        since = now if self._stalled_since is None else self._stalled_since
        return max(since + self._patience - now, 0.0)

    async def _ends_at(self, position: int) -> bool:
        """Return True if there is nothing to read. A database that does not answer says nothing about the broker."""
        try:
            return await self._log_watcher.ends_at(position)
        except BaseException:
            self._stalled_since = None
            raise

    def _read_log(self, reason: str) -> None:
        self.reads_log_since = time.monotonic()
        if self._name is not None:
            _log.warning("%s: reads the log instead of the broker until it is back: %s", self._name, reason)
        self._return = start_task(self._until_back(), what="look at the broker")

    async def _until_back(self) -> None:
        while True:
            await asyncio.sleep(self._look)
            with suppress(*TRANSIENT):
                if await self._broker.holds(self._after):
                    return

    def _go_back(self) -> None:
        self._return = self.reads_log_since = self._stalled_since = None
        if self._name is not None:
            _log.info("%s: reads the broker again", self._name)
