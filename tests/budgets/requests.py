"""The requests and events whose costs are counted. Their texts have the same lengths each time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from domain.event.commands import AddOrUpdateEvent
from domain.kernel.ids import new_id

_BEGIN: Final = datetime(2031, 3, 1, 10, tzinfo=UTC)
_DESCRIPTION: Final = "Live from the main hall with commentary, replays and interviews after the end"
_NAMESPACES: Final = (
    'xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:speke="urn:aws:amazon:com:speke"'
)
_SYSTEMS: Final = ("edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", "9a04f079-9840-4286-ab92-e65be0885f95")
"""Widevine and PlayReady."""


def event_body(number: int) -> dict[str, Any]:
    """Return the body of a POST that adds an Event with nine members."""
    start = _BEGIN + timedelta(minutes=number)
    return {
        "title": f"Premier League: Ajax - Rovers {number:06d}",
        "refId": f"schedule-{number:06d}",
        "externalId": f"urn:planning:event:{number:012x}",
        "description": _DESCRIPTION,
        "scheduledStart": start.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "scheduledEnd": (start + timedelta(minutes=105)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "autoStart": False,
        "autoEnd": False,
        "autoPublish": True,
    }


def event_command(number: int) -> AddOrUpdateEvent:
    """Return the command that adds the same Event."""
    start = _BEGIN + timedelta(minutes=number)
    changes = {
        "title": f"Premier League: Ajax - Rovers {number:06d}",
        "ref_id": f"schedule-{number:06d}",
        "external_id": f"urn:planning:event:{number:012x}",
        "description": _DESCRIPTION,
        "scheduled_start": start,
        "scheduled_end": start + timedelta(minutes=105),
        "auto_publish": True,
    }
    return AddOrUpdateEvent(new_id(), changes, new=True)


def patch_body(number: int) -> Sequence[dict[str, str]]:
    return [{"op": "replace", "path": "/title", "value": f"Delayed until {number:06d}"}]


def speke_body(content: str) -> str:
    """Return a request for one key for two systems."""
    systems = "".join(f'<cpix:DRMSystem kid="" systemId="{system}"></cpix:DRMSystem>' for system in _SYSTEMS)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><cpix:CPIX id="{content}" {_NAMESPACES}><cpix:ContentKeyList>'
        '<cpix:ContentKey kid="" explicitIV=""></cpix:ContentKey></cpix:ContentKeyList>'
        f"<cpix:DRMSystemList>{systems}</cpix:DRMSystemList></cpix:CPIX>"
    )


def job_body(number: int, workflow: str) -> dict[str, Any]:
    return {"job": {"workflow": workflow}, "parameters": {"content_id": f"match-{number:06d}"}}
