"""The meaning of the domain events of assets, for their Event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from domain.asset.aggregate import Asset
from domain.asset.events import FileDeleted
from domain.event.aggregate import MediaEvent
from domain.kernel.event import DomainEvent
from workers.webhook.policy import NOTHING, EventChange, Notified, Owner


def changes(event: DomainEvent) -> EventChange:
    return NOTHING if isinstance(event, FileDeleted) else EventChange.ASSETS


NOTIFIED: Final[Mapping[str, Notified]] = {
    Asset.KIND: Notified(changes=changes, owner=Owner("event_id", MediaEvent.KIND)),
}
