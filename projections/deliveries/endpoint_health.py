"""The health of an endpoint, as its sender writes it with the outcome of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Health(NamedTuple):
    """Since when all attempts at an endpoint have failed; None: the last one succeeded. `open_for`: seconds until its circuit
    breaker lets an attempt through; None: it is closed."""

    failing_since: datetime | None
    open_for: float | None = None


@dataclass(frozen=True, slots=True)
class EndpointHealthChange:
    """A change of an endpoint's health."""

    webhook: UUID
    shard: int
    epoch: int
    health: Health
