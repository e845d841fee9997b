"""Callbacks of services that provision, which sign them. A callback is only a reason to ask the service earlier.

See docs/reference/provisioning-service.md#callbacks.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Final

from domain.kernel.clock import Clock
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from workers.webhook.sender.attempt import signatures

CHANNEL: Final = "medialedger_provision"
_AGE: Final = 300.0
"""Seconds by which the time of a callback may differ from the clock of this machine."""
_LONGEST: Final = 200

SigningKey = Callable[[str], bytes]
"""Returns the key with which the service of this template signs; empty if there is none. It reads a file."""


class ServiceCallbacks:
    """Checks callbacks, and notifies the processes that provision."""

    def __init__(self, database: Database, signing_key: SigningKey, *, clock: Clock) -> None:
        self._database = database
        self._signing_key = signing_key
        self._clock = clock

    async def take(self, template: str, infrastructure: str, *, message: str, timestamp: str, signature: str, body: bytes) -> bool:
        """Accept a callback, and return True, if the service has signed it by Standard Webhooks."""
        key = await asyncio.to_thread(self._signing_key, template)
        if not key or max(map(len, (infrastructure, message, timestamp))) > _LONGEST:
            return False
        with suppress(ValueError):
            if abs(self._clock().timestamp() - int(timestamp)) > _AGE:
                return False
            expected = signatures([key], body, message=message, timestamp=int(timestamp)).encode()
            if any(hmac.compare_digest(expected, candidate.encode()) for candidate in signature.split(" ")[:10]):
                await self._database.row("SELECT pg_notify(%s, %s)", (CHANNEL, infrastructure))
                return True
        return False


class CallbackListener(BackgroundTask):
    """Receives the notifications of callbacks in processes that provision. Their content is not trusted."""

    WHAT: ClassVar[str] = "listener to callbacks of provisioning"

    def __init__(self, database: Database, hurry: Callable[[str], None]) -> None:
        self._database = database
        self._hurry = hurry

    async def _turn(self) -> None:
        connection = await self._database.connect("provisioning listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            async for notification in connection.receive():
                self._hurry(notification.payload)
        finally:
            await connection.close()
