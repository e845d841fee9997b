"""The filters of Event lists, and the SQL for them. See docs/reference/api/events.md.

Filters combine with AND, the values of one filter with OR. Values are always parameters, never part of the SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.event.values import EventState
from domain.provision.values import ProvisionState
from projections.kernel.database.arrays import PackedArray
from projections.kernel.database.page import FIRST_PAGE, Window
from projections.kernel.sql.where import Part, where

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
    """A filter of Events. A part that is None or empty does not filter.

    Names match exactly, a category by its name or label. `search` is a substring in any case.
    """

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
    ids: Sequence[UUID] = ()
    skip: Sequence[UUID] = ()
    deleted: bool = False
    order_column: str | None = None
    descending: bool = False
    window: Window = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Two statements with the same conditions: one page of rows, and the count of all rows.

    `prepare` is False with a filter on tags or categories: PostgreSQL must plan for the given ids, because their numbers of Events
    differ widely. None leaves the decision to the driver.
    """

    page: str
    count: str
    parameters: dict[str, Any]
    prepare: bool | None = None


Ids = Mapping[str, Sequence[UUID]]
"""The ids of the records with the filter's names, by the part of the filter. A part without names is absent."""

_NAMED = {"room": "room", "event_type": "event_type", "channel": "channel", "tags": "tag", "categories": "category"}
_NAMES = """
SELECT n.part, r.id::uuid FROM unnest(%(parts)s::text[], %(kinds)s::text[], %(names)s::text[]) AS n(part, kind, name)
JOIN record_view r ON r.kind = n.kind AND r.name = n.name AND NOT r.deleted
UNION
SELECT n.part, r.id::uuid FROM unnest(%(parts)s::text[], %(kinds)s::text[], %(names)s::text[]) AS n(part, kind, name)
JOIN record_view r ON r.kind = n.kind AND r.label = n.name AND NOT r.deleted
"""


def names_query(filter_: EventFilter) -> tuple[str, dict[str, list[str]]] | None:
    """Return the statement that finds (part, id) for the names of the filter; None if it has no names. A label of a category counts
    as a name."""
    lookups = [(part, kind, name) for part, kind in _NAMED.items() for name in _values(getattr(filter_, part))]
    if not lookups:
        return None
    parts, kinds, names = (list(column) for column in zip(*lookups, strict=True))
    return _NAMES, {"parts": parts, "kinds": kinds, "names": names}


def ids_of(filter_: EventFilter, rows: Iterable[Sequence[Any]]) -> Ids:
    """Return the ids from the rows of `names_query`. A part is empty if no record has its names."""
    ids: dict[str, list[UUID]] = {part: [] for part in _NAMED if _values(getattr(filter_, part))}
    for part, key in rows:
        ids[part].append(key)
    return ids


def _values(value: str | Sequence[str] | None) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value or ()


def list_query(filter_: EventFilter, ids: Ids, *, candidates: PackedArray | None = None) -> ListQuery:
    """Return the statements of a list. `candidates` are all Events on which the search term has to be tested; None means all
    Events."""
    conditions, parameters = _conditions(filter_, ids)
    if candidates is not None:
        conditions.insert(0, "e.id = ANY(%(candidates)s)")
        parameters["candidates"] = candidates
    all_of = " AND ".join(conditions)
    joins, order = _order(filter_)
    # PostgreSQL estimates that every third row contains a substring. Without other filters it would scan the index of the order row
    # by row until the page is full; OFFSET 0 makes it filter first and sort afterwards.
    fenced = f"(SELECT * FROM event_view e WHERE {all_of} OFFSET 0) e{joins}"
    source = fenced if searches_only(filter_) else f"event_view e{joins} WHERE {all_of}"
    page = f"SELECT e.id, e.shown_version, e.shown FROM {source} ORDER BY {order} LIMIT %(limit)s OFFSET %(offset)s"
    parameters |= {"limit": filter_.window.limit, "offset": filter_.window.offset}
    prepare = False if "tags" in ids or "categories" in ids else None
    return ListQuery(page, f"SELECT count(*) FROM event_view e WHERE {all_of}", parameters, prepare)


def searches_only(filter_: EventFilter) -> bool:
    """Return True if no other part of the filter has an index."""
    f = filter_
    times = (f.scheduled_from, f.scheduled_to, f.modified_from, f.modified_to)
    names = (f.room, f.event_type, f.channel, *f.tags, *f.categories)
    links = (*names, *f.ids, f.room_id, f.event_type_id, f.tag_id, f.category_id)
    return bool(f.search) and all(part is None for part in (*times, *links))


def _order(filter_: EventFilter) -> tuple[str, str]:
    """Return the joins and the ORDER BY list: nulls last in both directions, ties by id in the same direction."""
    direction = "DESC" if filter_.descending else "ASC"
    name = filter_.order_column
    column = ORDER_COLUMNS[name] if name else "e.scheduled_start"
    kind = _LINKED.get(name or "")
    joins = (
        f" LEFT JOIN record_view {kind} ON {kind}.kind = '{kind}' AND {kind}.id = e.{kind}_id::text AND NOT {kind}.deleted"
        if kind
        else ""
    )
    return joins, f"{column} {direction} NULLS LAST, e.id {direction}"


def _conditions(filter_: EventFilter, ids: Ids) -> tuple[list[str], dict[str, Any]]:
    conditions, parameters = where(_parts(filter_))
    conditions.insert(0, "e.deleted" if filter_.deleted else "NOT e.deleted")
    for part, keys in ids.items():
        conditions.append(_LINKED_BY[part].format("= %(" + part + ")s" if len(keys) == 1 else "= ANY(%(" + part + ")s)"))
        parameters[part] = keys[0] if len(keys) == 1 and part not in _ARRAYS else list(keys)
    return conditions, parameters


_ARRAYS = frozenset({"tags", "categories"})
_LINKED_BY = {
    "room": "e.room_id {}",
    "event_type": "e.event_type_id {}",
    "channel": "e.channel_id {}",
    "tags": "e.tag_ids && %(tags)s::uuid[]",
    "categories": "e.category_ids && %(categories)s::uuid[]",
}
"""The conditions by part. A single id is compared with `=`, so that the index of the link returns the Events in their default
order."""


def _parts(filter_: EventFilter) -> list[Part]:
    return [
        ("scheduled_from", filter_.scheduled_from, "e.scheduled_start >= %(scheduled_from)s"),
        ("scheduled_to", filter_.scheduled_to, "e.scheduled_start <= %(scheduled_to)s"),
        ("modified_from", filter_.modified_from, "e.date_modified >= %(modified_from)s"),
        ("modified_to", filter_.modified_to, "e.date_modified <= %(modified_to)s"),
        ("states", [int(state) for state in filter_.states], "e.state = ANY(%(states)s)"),
        ("provision_states", [int(state) for state in filter_.provision_states], "e.provision_state = ANY(%(provision_states)s)"),
        ("room_id", filter_.room_id, "e.room_id = %(room_id)s"),
        ("event_type_id", filter_.event_type_id, "e.event_type_id = %(event_type_id)s"),
        ("tag_id", filter_.tag_id, "e.tag_ids @> ARRAY[%(tag_id)s]"),
        ("category_id", filter_.category_id, "e.category_ids @> ARRAY[%(category_id)s]"),
        ("search", filter_.search.lower() if filter_.search else None, "strpos(e.search_text, %(search)s) > 0"),
        ("no_scheduled_end", filter_.no_scheduled_end, "e.scheduled_end IS NULL"),
        ("contains_flow", filter_.contains_flow, "e.flow_id IS NOT NULL"),
        ("ids", list(filter_.ids), "e.id = ANY(%(ids)s)"),
        ("skip", list(filter_.skip), "e.id <> ALL(%(skip)s)"),
    ]
