"""What other packages bring, and what they are given: the package `medialedger` publishes it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import Any, Final, Protocol

from workers.ports import NO_HEADERS, Encoder, Outbound, Reply
from workers.target_ports import PublishingTarget

TARGETS: Final = "medialedger.targets"
ENCODERS: Final = "medialedger.encoders"


class TargetClient(Outbound, Protocol):
    """Requests over HTTP that reach public addresses, and those that the operator allows. It follows no redirects."""

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
        """A request whose body is made while it is sent. `seconds` bounds all of it, `seconds_without_progress` each piece."""
        ...


class TargetPlugin(Protocol):
    """Makes the target of a destination: an entry point of the group `medialedger.targets`, named as the target is."""

    def __call__(self, config: Mapping[str, Any], *, client: TargetClient) -> PublishingTarget:
        """`config` has its secrets; the target closes the `client`. It raises nothing: what is wrong with the configuration, the
        target says when it is used."""
        ...


class EncoderPlugin(Protocol):
    """Makes an encoder: an entry point of the group `medialedger.encoders`, named as the `type` of a channel's encoder."""

    def __call__(self, *, client: Outbound) -> Encoder: ...
