"""Lists of Events filtered by linked resources, on a large schedule: compared with the list without a filter, and PostgreSQL's
plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlencode

import psycopg

from bench import schedule
from bench.ground import Ground, Served, driven, in_turns
from bench.load import Seen
from bench.reads import filled
from bench.report import Result, Table, Target, middle
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.event_type import EventType
from domain.record.kinds.tag import Tag
from domain.record.record import Record
from projections.event.filters import EventFilter, ids_of, list_query, names_query

_REQUESTS = 200
_UNFILTERED = "no filter"
Asked = tuple[str, EventFilter]
"""A path below /api, and the filter that it becomes."""


def links(ground: Ground) -> Result:
    """(g) Lists filtered by room, type, channel, category, tags and flow on a million Events (a hundred thousand when quick)."""
    result = Result("links")
    url = filled(ground, ground.effort.many, result, what="catalogued")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE) event_view, record_view")
        plans = {name: _plans(connection, make(Random(schedule.SEED))[1]) for name, make in _LISTS.items()}
    with ground.server("product", url) as server:
        ground.settle()
        rounds = {
            name: partial(driven, server, _requests(server, make), clients=1, effort=ground.effort) for name, make in _LISTS.items()
        }
        seen = in_turns(rounds, rounds=max(ground.effort.rounds // 2, 2))
    _tell(result, seen, plans)
    result.raw |= {"lists": seen, "plans": plans}
    return result


def _named(name: str, kind: type[Record], many: int) -> Callable[[Random], Asked]:
    def make(random: Random) -> Asked:
        wanted = schedule.linked_name(kind, random.randrange(many))
        parts: dict[str, Any] = {
            "eventType": {"event_type": wanted},
            "channel": {"channel": wanted},
            "category": {"categories": [wanted]},
            "tags": {"tags": [wanted]},
        }
        return f"/event/?{urlencode({name: wanted})}", EventFilter(**parts[name])

    return make


def _room(random: Random) -> Asked:
    name = schedule.room_name(random.randrange(schedule.ROOMS))
    return f"/event/?{urlencode({'room': name})}", EventFilter(room=name)


def _several_tags(random: Random) -> Asked:
    names = [schedule.linked_name(Tag, random.randrange(schedule.TAGS)) for _ in range(5)]
    return f"/event/?{urlencode({'tags': ','.join(names)})}", EventFilter(tags=names)


def _of_tag(random: Random) -> Asked:
    key = schedule.linked_id(Tag, random.randrange(schedule.TAGS))
    return f"/tag/{key}/events/", EventFilter(tag_id=key)


def _of_type(random: Random) -> Asked:
    key = schedule.linked_id(EventType, random.randrange(schedule.TYPES))
    return f"/eventtype/{key}/events/", EventFilter(event_type_id=key)


_LISTS: dict[str, Callable[[Random], Asked]] = {
    _UNFILTERED: lambda _: ("/event/", EventFilter()),
    "room": _room,
    "eventType": _named("eventType", EventType, schedule.TYPES),
    "channel": _named("channel", Channel, schedule.CHANNELS),
    "category": _named("category", Category, schedule.CATEGORIES),
    "tags": _named("tags", Tag, schedule.TAGS),
    "five tags": _several_tags,
    "containsVuflow": lambda _: ("/event/?containsVuflow=true", EventFilter(contains_flow=True)),
    "events of a tag": _of_tag,
    "events of a type": _of_type,
}


def _requests(server: Served, make: Callable[[Random], Asked]) -> list[str]:
    random = Random(schedule.SEED)
    return [server.request("GET", f"/api{make(random)[0]}") for _ in range(_REQUESTS)]


def _plans(connection: psycopg.Connection[Any], wanted: EventFilter) -> list[str]:
    """Return how the page and the count read the Event view: the kind of scan and its index, for each node of the plan."""
    names = names_query(wanted)
    ids = ids_of(wanted, connection.execute(names[0].encode(), names[1]).fetchall()) if names is not None else {}
    asked = list_query(wanted, ids)
    return [
        node
        for text in (asked.page, asked.count)
        for (plan,) in connection.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), asked.parameters).fetchall()
        for node in _scans((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
    ]


def _scans(node: dict[str, Any]) -> Iterator[str]:
    if node.get("Relation Name") == "event_view" or "event_view" in node.get("Index Name", ""):
        yield f"{node['Node Type']} {node.get('Index Name', '')}".strip()
    for below in node.get("Plans", ()):
        yield from _scans(below)


def _tell(result: Result, seen: dict[str, list[Seen]], plans: dict[str, list[str]]) -> None:
    columns = ("", "p50 ms", "p99 ms", "of the unfiltered", "reads the view by")
    table = Table("(g) Lists by what Events point at, one client, 20 Events a page", columns)
    plain = seen[_UNFILTERED]
    for name, rounds in seen.items():
        share = middle([run.p50 / base.p50 for run, base in zip(rounds, plain, strict=True)])
        figures = (middle([getattr(run, part) for run in rounds]) for part in ("p50", "p99"))
        table.add(name, *figures, share, ", ".join(dict.fromkeys(plans[name])))
        if name != _UNFILTERED:
            scans = float(sum(plan.startswith(("Seq Scan", "Parallel Seq Scan")) for plan in plans[name]))
            result.targets.append(Target(f"list p50 of the unfiltered: {name}", share, 2.0, at_most=True))
            result.targets.append(Target(f"sequential scans of the Event view: {name}", scans, 0.0, unit="", at_most=True))
    result.tables.append(table)
