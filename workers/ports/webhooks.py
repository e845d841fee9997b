"""The probe of a webhook's address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The reply of a receiver to a sample notification. `error` is None on success; `id` is the `webhook-id` that was sent."""

    id: UUID
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class WebhookProbe(Protocol):
    """Sends sample notifications the way real ones are sent."""

    async def probe(self, webhook: UUID) -> ProbeResult: ...
