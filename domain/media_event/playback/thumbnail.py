"""The URL of an Event's thumbnail: the `thumbnail` itself, or a file in the storage of the flow."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from domain.media_event.playback.stream import encoded, url_below
from domain.media_event.playback.video_object import current_flow
from domain.media_event.values import EventDetails

_URL_SCHEMES = ("http://", "https://")


def thumbnail_flow(details: EventDetails) -> UUID | None:
    """Return the flow whose storage contains the thumbnail; None without a thumbnail, or if it is a URL."""
    thumbnail = details.thumbnail
    if not thumbnail or _is_url(thumbnail):
        return None
    return current_flow(details)


def thumbnail_url(details: EventDetails, *, storage: Mapping[UUID, str], content_id: str) -> str:
    """Return the URL, or "" without a thumbnail. `storage` holds the public storage URLs of flows by their ids."""
    thumbnail = details.thumbnail
    if not thumbnail or _is_url(thumbnail):
        return thumbnail or ""
    flow = thumbnail_flow(details)
    base = storage.get(flow, "") if flow is not None else ""
    return url_below(base, f"{encoded(content_id)}/{encoded(thumbnail.lstrip('/'), safe='/')}")


def _is_url(thumbnail: str) -> bool:
    return thumbnail.lower().startswith(_URL_SCHEMES)
