"""The links of an Event: the fields of `EventDetails` that refer to a record, and the kind of that record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from domain.event.values import EventDetails
from domain.kernel.ports import Link

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


_SINGLE: Final = tuple((name, kind) for name, kind in LINKS.items() if not name.endswith("_ids"))


def links(name: str, value: Any) -> Iterable[Link]:
    """Return the links in the value of one field."""
    if not value:
        return ()
    return [(LINKS[name], str(key)) for key in (value if isinstance(value, tuple) else (value,))]


def records_of(details: EventDetails) -> list[tuple[str, UUID]]:
    """Return the kind and id of each record that an Event refers to, without its tags."""
    values = details.__dict__
    records = [(kind, value) for name, kind in _SINGLE if (value := values[name])]
    records += [("category", key) for key in values["category_ids"]]
    return records


def links_of(details: EventDetails) -> list[Link]:
    """Return all links of an Event."""
    values = details.__dict__
    return [link for name in LINKS if (value := values[name]) for link in links(name, value)]
