"""Ports of the provisioning handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import UUID

from domain.kernel.aggregate import AggregateRoot
from domain.provision.row import ProvisionRow

LoadStream = Callable[[str], Awaitable[AggregateRoot | None]]
"""Loads an aggregate by the name of its stream."""


class ProvisionLookup(Protocol):
    """Finds Provision Infos."""

    async def of_event(self, event_id: UUID) -> ProvisionRow | None: ...
