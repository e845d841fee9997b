"""The interfaces of plug-ins of other packages, and of what plug-ins are passed. The package `medialedger` publishes them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import Any, Final, Protocol

from workers.ports.encoders import Encoder
from workers.ports.outbound import NO_HEADERS, Outbound, Reply
from workers.ports.targets import PublishingTarget

TARGETS: Final = "medialedger.targets"
ENCODERS: Final = "medialedger.encoders"


class TargetClient(Outbound, Protocol):
    """HTTP requests to public addresses and those that the operator allows. It follows no redirects."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        pieces: AsyncIterable[bytes],
        size: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        seconds: float | None = None,
        seconds_without_progress: float | None = None,
        most: int = 1_024,
    ) -> Reply:
        """Send a request whose body is produced while it is sent. `seconds` bounds the whole request, `seconds_without_progress`
        each piece."""
        ...


class TargetPlugin(Protocol):
    """Makes the target of a destination. It is an entry point of the group `medialedger.targets` with the name of the target."""

    def __call__(self, config: Mapping[str, Any], *, client: TargetClient) -> PublishingTarget:
        """Return the target for this configuration, with its secrets. The target closes the `client`. Nothing is raised: the target
        reports faults of the configuration when it is used."""
        ...


class EncoderPlugin(Protocol):
    """Makes an encoder. It is an entry point of the group `medialedger.encoders`, named as the `type` of a channel's encoder."""

    def __call__(self, *, client: Outbound) -> Encoder: ...
