"""Callbacks of services that provision, which sign them. One is only a reason to ask earlier.

docs/reference/provisioning-service.md#callbacks.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Final

from domain.kernel.clock import Clock
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database import Database
from workers.deliveries.signature import signatures

CHANNEL: Final = "medialedger_provision"
_AGE: Final = 300.0
"""Seconds by which the time of a callback may differ from ours."""
_LONGEST: Final = 200

SigningKey = Callable[[str], bytes]
"""The key with which the service of this template signs; empty where there is none. Reads a file."""


class ServiceCallbacks:
    """Checks them, and notifies those who provision, of whichever process."""

    def __init__(self, database: Database, signing_key: SigningKey, *, clock: Clock) -> None:
        self._database = database
        self._signing_key = signing_key
        self._clock = clock

    async def take(self, template: str, infrastructure: str, *, message: str, timestamp: str, signature: str, body: bytes) -> bool:
        """Whether the service has signed it, by Standard Webhooks."""
        key = await asyncio.to_thread(self._signing_key, template)
        if not key or max(map(len, (infrastructure, message, timestamp))) > _LONGEST:
            return False
        with suppress(ValueError):
            if abs(self._clock().timestamp() - int(timestamp)) > _AGE:
                return False
            wanted = signatures([key], body, message=message, timestamp=int(timestamp)).encode()
            if any(hmac.compare_digest(wanted, one.encode()) for one in signature.split(" ")[:10]):
                await self._database.row("SELECT pg_notify(%s, %s)", (CHANNEL, infrastructure))
                return True
        return False


class CallbackListener(BackgroundTask):
    """Hears of them where infrastructure is provisioned. What is told is not to be believed."""

    WHAT: ClassVar[str] = "listener to callbacks of provisioning"

    def __init__(self, database: Database, hurry: Callable[[str], None]) -> None:
        self._database = database
        self._hurry = hurry

    async def _turn(self) -> None:
        connection = await self._database.connect("provisioning listener", seconds=3.0)
        try:
            await connection.listen(CHANNEL)
            async for notification in connection.heard():
                self._hurry(notification.payload)
        finally:
            await connection.close()
