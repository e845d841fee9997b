"""The common part of targets at external services: HTTP with a token, films and live streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.answers import SECONDS
from workers.ports.targets import ServiceAddresses


class ServiceTarget:
    """A target at a service. `part` is the size of one request of an upload in bytes, `seconds` the time limit for an answer."""

    capabilities: frozenset[str] = frozenset({"upload", "resume", "query", "publish", "unpublish", "update", "delete", "live"})
    PART: ClassVar[int]

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        client: GuardedClient,
        addresses: ServiceAddresses,
        part: int | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._config = config
        self._client = client
        self._addresses = addresses
        self._part = self.PART if part is None else part
        self._seconds = seconds
        self._open()

    def _open(self) -> None:
        """Create the clients of the service."""
        raise NotImplementedError

    async def close(self) -> None:
        await self._client.close()
