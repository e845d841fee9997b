"""The health of an endpoint, as its sender records it with the outcome of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class EndpointFailures(NamedTuple):
    """The time since when all attempts at an endpoint have failed; None if the last one succeeded.

    `open_for` is the number of seconds until its circuit breaker permits an attempt; None if it is closed.
    """

    failing_since: datetime | None
    open_for: float | None = None


@dataclass(frozen=True, slots=True)
class EndpointHealthChange:
    """A change of an endpoint's health."""

    webhook: UUID
    shard: int
    epoch: int
    health: EndpointFailures
