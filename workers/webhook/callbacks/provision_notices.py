"""Notices of infrastructure for its callbacks: see docs/reference/api/provisioning.md#callbacks. These are pure functions.

There is a notice whenever a run ends: the requested infrastructure exists, failed, or is gone. There is none for the termination
after a reset, which no state shows.
"""

from __future__ import annotations

from typing import Any, Final

from domain.kernel.clock import iso
from domain.kernel.event import DomainEvent
from domain.provision import events
from domain.provision.aggregate import ProvisionInfo

ENDS: Final = (events.Provisioned, events.ProvisionFailed, events.PartlyTerminated, events.Terminated, events.TerminationFailed)


def payload(event: DomainEvent, info: ProvisionInfo) -> dict[str, Any] | None:
    """Return the payload for a domain event; None if there is no notice of the event. `info` is the Provision Info after the
    event."""
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
