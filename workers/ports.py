"""What the product needs of the world outside, in its own words. Adapters do it; only the composition roots know which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol
from uuid import UUID

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Transcoder(Protocol):
    """Cuts and converts media."""

    async def check(self) -> str | None:
        """Why it cannot be run, in words that name no host, path or secret; `None` when it can."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever its status: a redirect is a reply like others."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    """As it was sent, up to as many bytes as were asked for."""
    seconds: float
    address: str
    """The IP address that answered; empty if it is not known."""


class OutboundRefused(Exception):
    """We do not send this, and nothing was sent. One sentence that holds neither user info nor path nor query of the URL."""

    kind: ClassVar[str] = "refused"


class OutboundFailed(Exception):
    """No reply. One sentence, as above; `kind` is dns, connect, tls, timeout, closed or protocol.

    Only after dns, connect and tls is it certain that the other side did not get the request."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class Outbound(Protocol):
    """Requests over HTTP to addresses that others gave us."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        seconds: float = 15.0,
        most: int = 16_384,
    ) -> Reply:
        """`seconds` bounds all of it, from the name to the last byte; of the reply's body at most `most` bytes are read."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Probed:
    """What a receiver said to a notification that was made up. `error` None: it took it. `id` is the `webhook-id` that it got."""

    id: UUID
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class WebhookProbe(Protocol):
    """Sends a made-up notification as a real one is sent."""

    async def probe(self, webhook: UUID) -> Probed: ...
