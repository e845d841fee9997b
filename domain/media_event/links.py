"""The links of an Event: the fields of `EventDetails` that refer to a record, and the kind of that record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from domain.kernel.links import Link
from domain.media_event.values import EventDetails

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
    """The links in the value of one field."""
    if not value:
        return ()
    return [(LINKS[name], str(key)) for key in (value if isinstance(value, tuple) else (value,))]


def links_of(details: EventDetails) -> list[Link]:
    """All links of an Event."""
    values = details.__dict__
    return [link for name in LINKS if (value := values[name]) for link in links(name, value)]
