"""The payload of a notification: see docs/reference/api/webhooks.md#notification.

It is stored as the JSON text that is sent, so that every retry sends the same bytes. A form body is made from that text.
"""

from __future__ import annotations

from uuid import UUID

from pydantic_core import to_json

from domain.media_event.values import EventDetails
from workers.webhooks.policy import Action, Change, Effect


def payload(event_id: str, details: EventDetails, *, effect: Effect) -> str:
    """Return compact JSON. `details` are those of the Event right after the write that had the effect."""
    changes = effect.changes
    return to_json(
        {
            "eventId": event_id,
            "referenceId": details.ref_id or "",
            "externalId": details.external_id or "",
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
            "provisionState": None if details.provision is None else details.provision.state.name,
            "provisionStateChanged": Change.PROVISION_STATE in changes,
            "capturingLive2VodFlagChanged": Change.CAPTURING in changes,
            "action": effect.action.value,
        }
    ).decode()


def sample() -> str:
    """Return a sample to test a receiver. No Event has its id."""
    return payload(str(UUID(int=0)), EventDetails.blank(), effect=Effect(Action.UPDATED, Change.FORCED))
