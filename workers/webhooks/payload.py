"""The body of a notification: the 17 fields of document 2, "Events", item 3, in their order.

It is kept as the JSON text that goes out, so that every retry sends the same. A webhook that wants form parameters gets them made
of that text.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json, to_json

from domain.media_event.values import EventDetails
from workers.webhooks.policy import Change, Effect


def payload(event_id: str, details: EventDetails, *, effect: Effect) -> str:
    """Compact JSON. `details` are the Event's right after the write that had the effect."""
    changes = effect.changes
    return to_json(
        {
            "eventId": event_id,
            "referenceId": details.ref_id,
            "externalId": details.external_id,
            "state": details.state.name,
            "stateChanged": Change.STATE in changes,
            "metadataChanged": Change.METADATA in changes,
            "thumbnailChanged": Change.THUMBNAIL in changes,
            "isForced": Change.FORCED in changes,
            "audioChanged": Change.AUDIO in changes,
            "mp4State": details.mp4_state.name,
            "mp4StateChanged": Change.MP4_STATE in changes,
            "chapterPointsChanged": Change.CHAPTER_POINTS in changes,
            "assetsChanged": Change.ASSETS in changes,
            "provisionState": None,
            "provisionStateChanged": Change.PROVISION_STATE in changes,
            "capturingLive2VodFlagChanged": Change.CAPTURING in changes,
            "action": effect.action.value,
        }
    ).decode()


def form_body(payload: str) -> bytes:
    """The same fields as form parameters: names in PascalCase, null as empty, `true` and `false`."""
    members: dict[str, Any] = from_json(payload)
    return urlencode([(name[0].upper() + name[1:], _worded(value)) for name, value in members.items()]).encode()


def _worded(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
