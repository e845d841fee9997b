"""Notices of infrastructure for its callbacks: docs/reference/api/provisioning.md#callbacks. Pure.

There is one whenever a run ends: what was asked for is there, failed, or is gone. There is none of the termination that a reset
leaves behind, of which no state tells.
"""

from __future__ import annotations

from typing import Any, Final

from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent
from domain.provision import events
from domain.provision.aggregate import ProvisionInfo

ENDS: Final = (events.Provisioned, events.Failed, events.PartlyTerminated, events.Terminated, events.TerminationFailed)


def payload(event: DomainEvent, info: ProvisionInfo) -> dict[str, Any] | None:
    """The payload for a domain event; `info` is the Provision Info after it. None when there is no notice of the event."""
    if not isinstance(event, ENDS):
        return None
    return {
        "eventId": str(info.event_id),
        "infrastructureKey": info.infrastructure_key,
        "state": int(info.state),
        "stateString": info.state.name,
        "resources": list(info.resources),
        "time": iso(event.timestamp),
    }
