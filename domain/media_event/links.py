"""What a media Event points at: each link by its name in `EventDetails`, and the kind of record at its other end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from domain.media_event.values import EventDetails

Link = tuple[str, str]
"""A kind and an id."""

LINKS: Mapping[str, str] = {
    "room_id": "room",
    "event_type_id": "event_type",
    "category_ids": "category",
    "tag_ids": "tag",
    "channel_id": "channel",
    "flow_id": "flow",
    "remixflow_id": "flow",
    "archiverflow_id": "flow",
    "infrastructure_profile_id": "infrastructure_profile",
}


def links(name: str, value: Any) -> Iterable[Link]:
    """What one detail points at; nothing when it is not set."""
    if not value:
        return ()
    return [(LINKS[name], str(key)) for key in (value if isinstance(value, tuple) else (value,))]


def links_of(details: EventDetails) -> list[Link]:
    """Everything that an Event points at."""
    known = details.__dict__
    return [link for name in LINKS if (value := known[name]) for link in links(name, value)]
