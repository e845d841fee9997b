"""What GET /event/ can ask, as a value, and the SQL it becomes. Document 2, "GET /event/"; decisions.md, Events.

Filters combine with AND, the values of one with OR. Values are always parameters, never text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.media_event.values import EventState, ProvisionState
from projections.kernel.page import FIRST_PAGE, Window
from projections.kernel.where import Part, where

ORDER_COLUMNS: dict[str, str] = {
    "Title": "e.title",
    "State": "e.state",
    "DisplayLiveStart": "e.display_start",
    "DisplayLiveEnd": "e.display_end",
    "EventType": "event_type.name",
    "Room": "room.name",
    "Channel": "channel.name",
    "Vuflow": "flow.name",
    "RefId": "e.ref_id",
    "ExternalId": "e.external_id",
}
_LINKED = {"EventType": "event_type", "Room": "room", "Channel": "channel", "Vuflow": "flow"}


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Absent parts filter nothing. Names are whole and exact, a category's is its name or its label; `search` is a
    case-insensitive substring."""

    scheduled_from: datetime | None = None
    scheduled_to: datetime | None = None
    modified_from: datetime | None = None
    modified_to: datetime | None = None
    states: Sequence[EventState] = ()
    provision_states: Sequence[ProvisionState] = ()
    tags: Sequence[str] = ()
    room: str | None = None
    room_id: UUID | None = None
    event_type: str | None = None
    event_type_id: UUID | None = None
    tag_id: UUID | None = None
    category_id: UUID | None = None
    channel: str | None = None
    categories: Sequence[str] = ()
    search: str | None = None
    no_scheduled_end: bool = False
    contains_flow: bool = False
    skip: Sequence[UUID] = ()
    deleted: bool = False
    order_column: str | None = None
    descending: bool = False
    window: Window = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class Question:
    """Two statements over the same conditions: the page, and how many there are in all. One that asks for any of several links is
    planned anew each time: how many Events have a tag is known of the tag alone, not of tags in general."""

    page: str
    count: str
    parameters: dict[str, Any]
    prepare: bool | None = None


Ids = Mapping[str, Sequence[UUID]]
"""The records that a filter's names mean, by the name of the filter; a filter that was not asked for is absent."""

_NAMED = {"room": "room", "event_type": "event_type", "channel": "channel", "tags": "tag", "categories": "category"}
_NAMES = """
SELECT n.part, r.id::uuid FROM unnest(%(parts)s::text[], %(kinds)s::text[], %(names)s::text[]) AS n(part, kind, name)
JOIN record_view r ON r.kind = n.kind AND r.name = n.name AND NOT r.withdrawn
UNION
SELECT n.part, r.id::uuid FROM unnest(%(parts)s::text[], %(kinds)s::text[], %(names)s::text[]) AS n(part, kind, name)
JOIN record_view r ON r.kind = n.kind AND r.label = n.name AND NOT r.withdrawn
"""


def names_question(wanted: EventFilter) -> tuple[str, dict[str, list[str]]] | None:
    """What the filter's names mean, as a question for (part, id); None when it has none. A category's label is a name too."""
    found = [(part, kind, name) for part, kind in _NAMED.items() for name in _several(getattr(wanted, part))]
    if not found:
        return None
    parts, kinds, names = (list(column) for column in zip(*found, strict=True))
    return _NAMES, {"parts": parts, "kinds": kinds, "names": names}


def ids_of(wanted: EventFilter, rows: Iterable[Sequence[Any]]) -> Ids:
    """The answer to `names_question`, with an empty part for names that mean nothing."""
    ids: dict[str, list[UUID]] = {part: [] for part in _NAMED if _several(getattr(wanted, part))}
    for part, key in rows:
        ids[part].append(key)
    return ids


def _several(value: str | Sequence[str] | None) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value or ()


def question(wanted: EventFilter, ids: Ids) -> Question:
    conditions, parameters = _conditions(wanted, ids)
    all_of = " AND ".join(conditions)
    joins, order = _order(wanted)
    columns = "e.id, e.version, e.document, e.date_created, e.date_modified"
    # PostgreSQL takes a substring to be in every third row. Where nothing else narrows the search it would walk the order's index
    # row by row until the page is full; OFFSET 0 makes it find what the filters find first, and put that in order.
    fenced = f"(SELECT * FROM event_view e WHERE {all_of} OFFSET 0) e{joins}"
    found = fenced if _searches_everything(wanted) else f"event_view e{joins} WHERE {all_of}"
    page = f"SELECT {columns} FROM {found} ORDER BY {order} LIMIT %(limit)s OFFSET %(offset)s"
    parameters |= {"limit": wanted.window.limit, "offset": wanted.window.offset}
    prepare = False if "tags" in ids or "categories" in ids else None
    return Question(page, f"SELECT count(*) FROM event_view e WHERE {all_of}", parameters, prepare)


def _searches_everything(wanted: EventFilter) -> bool:
    w = wanted
    times = (w.scheduled_from, w.scheduled_to, w.modified_from, w.modified_to)
    names = (w.room, w.event_type, w.channel, *w.tags, *w.categories)
    links = (*names, w.room_id, w.event_type_id, w.tag_id, w.category_id)
    return bool(w.search) and all(part is None for part in (*times, *links))


def _order(wanted: EventFilter) -> tuple[str, str]:
    """Nulls last in both directions, ties by id in the same direction."""
    way = "DESC" if wanted.descending else "ASC"
    name = wanted.order_column
    column = ORDER_COLUMNS[name] if name else "e.scheduled_start"
    kind = _LINKED.get(name or "")
    joins = (
        f" LEFT JOIN record_view {kind} ON {kind}.kind = '{kind}' AND {kind}.id = e.{kind}_id::text AND NOT {kind}.withdrawn"
        if kind
        else ""
    )
    return joins, f"{column} {way} NULLS LAST, e.id {way}"


def _conditions(wanted: EventFilter, ids: Ids) -> tuple[list[str], dict[str, Any]]:
    conditions, parameters = where(_parts(wanted))
    conditions.insert(0, "e.deleted" if wanted.deleted else "NOT e.deleted")
    for part, keys in ids.items():
        conditions.append(_LINKED_BY[part].format("= %(" + part + ")s" if len(keys) == 1 else "= ANY(%(" + part + ")s)"))
        parameters[part] = keys[0] if len(keys) == 1 and part not in _IN_ARRAYS else list(keys)
    if wanted.provision_states:
        conditions.append("false")
    return conditions, parameters


_IN_ARRAYS = frozenset({"tags", "categories"})
_LINKED_BY = {
    "room": "e.room_id {}",
    "event_type": "e.event_type_id {}",
    "channel": "e.channel_id {}",
    "tags": "e.tag_ids && %(tags)s::uuid[]",
    "categories": "e.category_ids && %(categories)s::uuid[]",
}
"""An id that stands alone is compared with `=`: the index of the link then gives the Events in their usual order."""


def _parts(wanted: EventFilter) -> list[Part]:
    return [
        ("scheduled_from", wanted.scheduled_from, "e.scheduled_start >= %(scheduled_from)s"),
        ("scheduled_to", wanted.scheduled_to, "e.scheduled_start <= %(scheduled_to)s"),
        ("modified_from", wanted.modified_from, "e.date_modified >= %(modified_from)s"),
        ("modified_to", wanted.modified_to, "e.date_modified <= %(modified_to)s"),
        ("states", [int(state) for state in wanted.states], "e.state = ANY(%(states)s)"),
        ("room_id", wanted.room_id, "e.room_id = %(room_id)s"),
        ("event_type_id", wanted.event_type_id, "e.event_type_id = %(event_type_id)s"),
        ("tag_id", wanted.tag_id, "e.tag_ids @> ARRAY[%(tag_id)s]"),
        ("category_id", wanted.category_id, "e.category_ids @> ARRAY[%(category_id)s]"),
        ("search", wanted.search.lower() if wanted.search else None, "strpos(e.search_text, %(search)s) > 0"),
        ("no_scheduled_end", wanted.no_scheduled_end, "e.scheduled_end IS NULL"),
        ("contains_flow", wanted.contains_flow, "e.flow_id IS NOT NULL"),
        ("skip", list(wanted.skip), "e.id <> ALL(%(skip)s)"),
    ]
