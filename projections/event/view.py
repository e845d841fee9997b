"""The Event view: one row for each Event, with a column for each filter and order, the whole state as a document, and the values
that responses show."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.values import STREAMING, EventDetails
from domain.kernel.ports import Outcome
from projections.event.shown import lines
from projections.kernel.schema.view import Column, View
from projections.kernel.sql.search import SearchIndex
from projections.kernel.sql.tallies import Tally

EVENT_SEARCH: Final = SearchIndex("event_search", "event_view", kind=MediaEvent.KIND, key="uuid")


SEPARATOR = "\x1f"

STREAMING_STATES = ", ".join(str(int(state)) for state in sorted(STREAMING))
"""The states of live Events, as SQL."""
AUTO_START_WINDOW = "tstzrange(auto_start_at, scheduled_end)"
"""The window in which an Event is to be started, as SQL. An index of it finds due Events without those whose end has passed too,
which accumulate because nothing happens to them."""
USES_CHANNEL = f"NOT deleted AND (auto_start_at IS NOT NULL OR state IN ({STREAMING_STATES}))"
"""The condition on Events that the schedule is going to put on the air, or that are live, as SQL."""
SCHEDULE_ENDS = "coalesce(scheduled_end, 'infinity'::timestamptz)"
"""The end of an Event on its channel, as SQL. With it, an index of `USES_CHANNEL` leaves out Events that are over."""
AUTO_PUBLISH_WINDOW = "tstzrange(auto_publish_at, auto_publish_until)"
"""The window in which an Event is to be made public, as SQL."""
AUTO_INSTANT_VOD_WINDOW = "tstzrange(auto_instant_vod_at, auto_instant_vod_until)"
"""The window in which the recorded stream of an Event is to be shown, as SQL."""
AUTO_PROVISION_WINDOW = "tstzrange(auto_provision_at, auto_provision_until)"
"""The window in which an Event's infrastructure is to be provisioned, as SQL."""


def _on_air_version(details: EventDetails) -> int | None:
    return details.encoding.version if details.on_air_channel_id and details.encoding else None


def _array(ids: tuple[UUID, ...]) -> str | None:
    return "{" + ",".join(map(str, ids)) + "}" if ids else None


def search_text(key: str, details: EventDetails) -> str:
    """Return the text for the filter `search`, in lower case: title, refId, externalId, contentId and description."""
    parts = (details.title, details.ref_id, details.external_id, key, details.description)
    return SEPARATOR.join(part for part in parts if part).lower()


def document(details: EventDetails) -> str:
    """Return the whole state as JSON, without fields that are not set."""
    written: bytes = details.__pydantic_serializer__.to_json(details, exclude_none=True)
    return written.decode()


def _shown(event: MediaEvent) -> bytes:
    return lines(event.key, event.details, created=event.created_on, modified=event.shown_on)


EVENT_VIEW = View[MediaEvent](
    name="event_view",
    version=10,
    kinds=(MediaEvent.KIND,),
    columns=(
        Column("id", "uuid", lambda event: event.key, wire_type="text"),
        Column("version", "bigint", lambda event: event.version),
        Column("deleted", "boolean", lambda event: event.deleted),
        Column("state", "smallint", lambda event: event.details.state),
        Column("title", "text", lambda event: event.details.title),
        Column("ref_id", "text", lambda event: event.details.ref_id),
        Column("external_id", "text", lambda event: event.details.external_id),
        Column("room_id", "uuid", lambda event: event.details.room_id),
        Column("event_type_id", "uuid", lambda event: event.details.event_type_id),
        Column("channel_id", "uuid", lambda event: event.details.channel_id),
        Column("flow_id", "uuid", lambda event: event.details.flow_id),
        Column("category_ids", "uuid[]", lambda event: _array(event.details.category_ids)),
        Column("tag_ids", "uuid[]", lambda event: _array(event.details.tag_ids)),
        Column("scheduled_start", "timestamptz", lambda event: event.details.scheduled_start),
        Column("scheduled_end", "timestamptz", lambda event: event.details.scheduled_end),
        Column("display_start", "timestamptz", lambda event: event.details.display_start),
        Column("display_end", "timestamptz", lambda event: event.details.display_end),
        Column("date_created", "timestamptz", lambda event: event.created_on),
        Column("date_modified", "timestamptz", lambda event: event.shown_on),
        Column("shown_version", "bigint", lambda event: event.shown_version),
        Column("vod_due_at", "timestamptz", lambda event: event.details.vod_due_at),
        Column("start_due_at", "timestamptz", lambda event: event.details.start_due_at),
        Column("provision_state", "smallint", lambda event: event.details.provision and event.details.provision.state),
        Column("provision_due_at", "timestamptz", lambda event: event.details.provision_due_at),
        Column("termination_due_at", "timestamptz", lambda event: event.details.termination_due_at),
        Column("auto_start_at", "timestamptz", lambda event: event.details.auto_start_at),
        Column("auto_end_at", "timestamptz", lambda event: event.details.auto_end_at),
        Column("auto_publish_at", "timestamptz", lambda event: event.details.auto_publish_at),
        Column("auto_publish_until", "timestamptz", lambda event: event.details.auto_publish_until),
        Column("auto_withdraw_at", "timestamptz", lambda event: event.details.auto_withdraw_at),
        Column("auto_instant_vod_at", "timestamptz", lambda event: event.details.auto_instant_vod_at),
        Column("auto_instant_vod_until", "timestamptz", lambda event: event.details.auto_instant_vod_until),
        Column("auto_instant_vod_end_at", "timestamptz", lambda event: event.details.auto_instant_vod_end_at),
        Column("auto_provision_at", "timestamptz", lambda event: event.details.auto_provision_at),
        Column("auto_provision_until", "timestamptz", lambda event: event.details.auto_provision_until),
        Column("auto_terminate_at", "timestamptz", lambda event: event.details.auto_terminate_at),
        Column("on_air_channel_id", "uuid", lambda event: event.details.on_air_channel_id),
        Column("on_air_version", "bigint", lambda event: _on_air_version(event.details)),
        Column("awaited_channel_id", "uuid", lambda event: event.details.awaited_channel_id),
        Column("search_text", "text", lambda event: search_text(event.key, event.details)),
        Column("document", "text", lambda event: document(event.details)),
        Column("shown", "bytea", _shown),
    ),
    key=("id",),
    indexes={
        "schedule": "{table} (scheduled_start, id) WHERE NOT deleted",
        "schedule_desc": "{table} (scheduled_start DESC NULLS LAST, id DESC) WHERE NOT deleted",
        "room": "{table} (room_id, scheduled_start, id) WHERE NOT deleted AND room_id IS NOT NULL",
        "event_type": "{table} (event_type_id, scheduled_start, id) WHERE NOT deleted AND event_type_id IS NOT NULL",
        "channel": "{table} (channel_id, scheduled_start, id) WHERE NOT deleted AND channel_id IS NOT NULL",
        "flow": "{table} (flow_id, scheduled_start, id) WHERE NOT deleted AND flow_id IS NOT NULL",
        "state": "{table} (state, scheduled_start, id) WHERE NOT deleted",
        "title": "{table} (title, id) WHERE NOT deleted",
        "ref_id": "{table} (ref_id) WHERE NOT deleted AND ref_id IS NOT NULL",
        "external_id": "{table} (external_id) WHERE NOT deleted AND external_id IS NOT NULL",
        "tags": "{table} USING gin (tag_ids) WHERE tag_ids IS NOT NULL",
        "categories": "{table} USING gin (category_ids) WHERE category_ids IS NOT NULL",
        "modified": "{table} (date_modified, id) WHERE NOT deleted",
        "deleted": "{table} (scheduled_start, id) WHERE deleted",
        "provision_state": "{table} (provision_state, scheduled_start, id) WHERE NOT deleted AND provision_state IS NOT NULL",
        "provision_due": "{table} (provision_due_at, id) WHERE NOT deleted AND provision_due_at IS NOT NULL",
        "termination_due": "{table} (termination_due_at, id) WHERE NOT deleted AND termination_due_at IS NOT NULL",
        "vod_due": "{table} (vod_due_at, id) WHERE NOT deleted AND vod_due_at IS NOT NULL",
        "start_due": "{table} (start_due_at, scheduled_end) WHERE NOT deleted AND start_due_at IS NOT NULL",
        "auto_start": "{table} (auto_start_at) WHERE auto_start_at IS NOT NULL",
        "auto_start_window": f"{{table}} USING gist ({AUTO_START_WINDOW}) WHERE auto_start_at IS NOT NULL",
        "auto_end": "{table} (auto_end_at) WHERE auto_end_at IS NOT NULL",
        "auto_publish": "{table} (auto_publish_at) WHERE auto_publish_at IS NOT NULL",
        "auto_publish_window": f"{{table}} USING gist ({AUTO_PUBLISH_WINDOW}) WHERE auto_publish_at IS NOT NULL",
        "auto_withdraw": "{table} (auto_withdraw_at) WHERE auto_withdraw_at IS NOT NULL",
        "auto_instant_vod": "{table} (auto_instant_vod_at) WHERE auto_instant_vod_at IS NOT NULL",
        "auto_instant_vod_window": f"{{table}} USING gist ({AUTO_INSTANT_VOD_WINDOW}) WHERE auto_instant_vod_at IS NOT NULL",
        "auto_instant_vod_end": "{table} (auto_instant_vod_end_at) WHERE auto_instant_vod_end_at IS NOT NULL",
        "auto_provision": "{table} (auto_provision_at) WHERE auto_provision_at IS NOT NULL",
        "auto_provision_window": f"{{table}} USING gist ({AUTO_PROVISION_WINDOW}) WHERE auto_provision_at IS NOT NULL",
        "auto_terminate": "{table} (auto_terminate_at) WHERE auto_terminate_at IS NOT NULL",
        "on_air": "{table} (on_air_channel_id) WHERE on_air_channel_id IS NOT NULL",
        "channel_use": f"{{table}} (channel_id, {SCHEDULE_ENDS}) WHERE channel_id IS NOT NULL AND {USES_CHANNEL}",
        "awaited": "{table} (awaited_channel_id) WHERE awaited_channel_id IS NOT NULL",
    },
    tallies=(
        Tally("all"),
        Tally("state", "v.state"),
        Tally("day", "v.state", day="v.scheduled_start"),
        Tally("room", "v.room_id"),
        Tally("event_type", "v.event_type_id"),
        Tally("channel", "v.channel_id"),
        Tally("flow", "CASE WHEN v.flow_id IS NOT NULL THEN '' END"),
        Tally("category", "v.category_ids", each=True),
        Tally("tag", "v.tag_ids", each=True),
    ),
)


def lines_of(outcome: Outcome[MediaEvent]) -> bytes:
    """Return what a response shows of the Event of an outcome: from the row that was written, or made from the aggregate."""
    event = outcome.aggregate
    for view, values, _ in outcome.rows:
        if view is EVENT_VIEW and values[0] == event.key:
            shown: bytes = values[-1]
            return shown
    return _shown(event)
