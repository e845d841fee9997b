"""The values of an Event as its responses show them: JSON texts, one in each line, which the view stores. A response adds what it
reads of linked records, so that a list of Events is written and not built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from pydantic_core import from_json, to_json

from domain.event.links import records_of
from domain.event.playback import thumbnail_flow, thumbnail_path, thumbnail_url
from domain.event.ports import EventRow
from domain.event.values import EventDetails, EventState, Mp4State
from domain.kernel.clock import iso
from domain.provision.values import ProvisionSummary

FIELDS: Final = {
    "id": "null",
    "title": '""',
    "ref_id": '""',
    "external_id": '""',
    "description": "null",
    "channel_id": "null",
    "channel": "null",
    "flow_id": "null",
    "flow": "null",
    "remixflow_id": "null",
    "remixflow": "null",
    "archiverflow_id": "null",
    "archiverflow": "null",
    "infrastructure_profile_id": "null",
    "infrastructure_profile": "null",
    "event_type_id": "null",
    "event_type": "null",
    "room_id": "null",
    "room": "null",
    "event_type_colour": "null",
    "state": "0",
    "state_string": "null",
    "mp4_state": "0",
    "mp4_state_string": "null",
    "auto_start": "false",
    "auto_end": "false",
    "auto_publish": "false",
    "auto_start_publications": "false",
    "auto_provision_infrastructure": "false",
    "auto_terminate_infrastructure": "false",
    "capturing_live2_vod": "false",
    "vod_drm": "false",
    "display_start": "null",
    "display_end": "null",
    "scheduled_start": "null",
    "scheduled_end": "null",
    "scheduled_channel_start": "null",
    "scheduled_channel_end": "null",
    "actual_live_start": "null",
    "actual_live_end": "null",
    "published_start": "null",
    "published_end": "null",
    "instant_vod_start": "null",
    "instant_vod_end": "null",
    "scheduled_provision_at": "null",
    "scheduled_terminate_at": "null",
    "capture_vod_start": "null",
    "capture_vod_end": "null",
    "date_created": "null",
    "date_modified": "null",
    "date_deleted": "null",
    "archiver_start": "null",
    "archiver_end": "null",
    "drm_json": '""',
    "drm_data": "null",
    "additional_streaming_options": '""',
    "dvr_length": "0",
    "max_bitrate": "0",
    "min_bitrate": "0",
    "task_engine_json": '""',
    "thumbnail": '""',
    "thumbnail_url": '""',
    "document_url": '""',
    "tag_url": '""',
    "custom_properties": "[]",
    "categories": "[]",
    "category": "null",
    "category_id": "null",
    "provision": "null",
    "video": "null",
    "links": "",
    "category_ids": "",
    "thumbnail_flow": "",
    "thumbnail_path": "",
}
"""The names of the values, in their order, each with its value in an Event without facts. A value that is made of linked records or
of the request is added by each response. `links`, `category_ids`, `thumbnail_flow` and `thumbnail_path` are no JSON: they are the
links to the records that a response shows, as `kind:id`, and what the categories and the address of the picture are made of.

A change of a value needs a new version of the view. A new value is added at the end, so that builds that know fewer values read the
others; a row of such a build has null in its place.
"""


def _names(kind: type[IntEnum]) -> Sequence[str]:
    """Return the names of the members as JSON, by their numbers. A sequence finds them without a call of Python's `hash`."""
    return [f'"{kind(number).name}"' if number in kind.__members__.values() else "" for number in range(max(kind) + 1)]


_STATES: Final = _names(EventState)
_MP4_STATES: Final = _names(Mp4State)


class ShownEvent(NamedTuple):
    """An Event as responses show it: its id, the version of the last change that a GET shows, and the values of `FIELDS`, one in
    each line."""

    id: UUID
    version: int
    lines: bytes

    @classmethod
    def of(cls, row: EventRow) -> Self:
        return cls(row.id, row.version, lines(str(row.id), row.details, created=row.date_created, modified=row.date_modified))


def lines(key: str, details: EventDetails, *, created: datetime, modified: datetime) -> bytes:
    """Return the values of an Event, one in each line. `values_of` reads them."""
    values: dict[str, str] = FIELDS.copy()
    for name, value in details.__dict__.items():
        if value is not None and value is not False and name in FIELDS:
            values[name] = _FORMATS[type(value)](value)
    values["id"] = f'"{key}"'
    values["state_string"], values["mp4_state_string"] = _STATES[details.state], _MP4_STATES[details.mp4_state]
    values["date_created"], values["date_modified"] = _time(created), _time(modified)
    if (start := details.display_start) is not None:
        values["display_start"] = _time(start)
    if (end := details.display_end) is not None:
        values["display_end"] = _time(end)
    if details.drm_json:
        values["drm_data"] = _drm_data(details.drm_json)
    if details.category_ids:
        values["category_id"] = f'"{details.category_ids[0]}"'
    if details.thumbnail:
        values["thumbnail_url"] = encode_basestring(thumbnail_url(details, storage="", content_id=key))
        if (flow := thumbnail_flow(details)) is not None:
            values["thumbnail_flow"], values["thumbnail_path"] = str(flow), thumbnail_path(details.thumbnail, content_id=key)
    values["links"] = " ".join([f"{kind}:{record}" for kind, record in records_of(details)])
    return "\n".join(values.values()).encode()


def values_of(shown: bytes) -> list[bytes]:
    """Return the values in these lines, in the order of `FIELDS`."""
    values = shown.split(b"\n")
    return values if len(values) >= len(FIELDS) else values + [b"null"] * (len(FIELDS) - len(values))


@lru_cache(8192)
def _time(value: datetime) -> str:
    return f'"{iso(value)}"'


_FORMATS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: encode_basestring,
    UUID: '"{}"'.format,
    datetime: _time,
    bool: lambda _: "true",
    int: str,
    EventState: int.__repr__,
    Mp4State: int.__repr__,
    tuple: lambda ids: " ".join(map(str, ids)),
    ProvisionSummary: ProvisionSummary.model_dump_json,
}


def _drm_data(drm_json: str) -> str:
    """Return the member `drm_data` of the parsed `drmJson`; null without one."""
    try:
        document = from_json(drm_json, allow_inf_nan=False)
    except ValueError:
        return "null"
    return to_json(document.get("drm_data"), inf_nan_mode="null").decode() if isinstance(document, dict) else "null"
