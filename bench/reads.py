"""Reads over HTTP on a small schedule and on one a hundred times as large."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from urllib.parse import quote, urlencode

import psycopg
import uvloop

from bench import schedule
from bench.fill import fill, rebuild
from bench.ground import Ground, Served, driven, in_turns, trivial_posts
from bench.load import Seen
from bench.report import Result, Table, Target, middle
from bench.writes import ratio

_FEW = 10_000
_REQUESTS = 400
_SAMPLE = 20_000
_FILTERS = {
    "day and room": True,
    "day and state": True,
    "search within a day": True,
    "live now": True,
    "refId look-up": True,
    "first page, no filter": False,
    "search everywhere": False,
}
"""The reads, with True if they have a target: the others count or search the whole table."""


def reads(ground: Ground) -> Result:
    """(c) GET by id and lists, on 10 000 Events and on a million (a hundred thousand when quick)."""
    many = ground.effort.many
    result = Result("reads")
    urls = {total: filled(ground, total, result) for total in (_FEW, many)}
    with (
        ground.server("trivial") as trivial,
        ground.server("product", urls[_FEW]) as small,
        ground.server("product", urls[many]) as large,
    ):
        sizes = {_FEW: small, many: large}
        ground.settle()
        single: dict[str, Callable[[], Seen]] = {
            "trivial POST": partial(driven, trivial, trivial_posts(trivial), clients=32, effort=ground.effort)
        }
        lists: dict[str, Callable[[], Seen]] = {}
        for total, server in sizes.items():
            single[f"GET by id, {total:,}"] = partial(driven, server, by_id(server, total), clients=32, effort=ground.effort)
            for name in _FILTERS:
                lists[f"{name}/{total}"] = partial(driven, server, _list(server, name, total), clients=1, effort=ground.effort)
        gets = in_turns(single, rounds=ground.effort.rounds)
        pages = in_turns(lists, rounds=max(ground.effort.rounds // 2, 2))
    _tell_gets(result, gets)
    _tell_lists(result, pages, many)
    result.raw |= {"gets": gets, "lists": pages}
    return result


def _tell_gets(result: Result, gets: dict[str, list[Seen]]) -> None:
    table = Table("(c) GET by id at 32 clients; ratio: of the trivial POST", ("", "req/s", "p50 ms", "p99 ms", "ratio"))
    for name, seen in gets.items():
        figures = (middle([getattr(run, part) for run in seen]) for part in ("rate", "p50", "p99"))
        table.add(name, *figures, ratio(seen, gets["trivial POST"]))
    result.tables.append(table)
    result.targets += [
        Target(f"{name} of trivial", ratio(seen, gets["trivial POST"]), 0.60)
        for name, seen in gets.items()
        if name != "trivial POST"
    ]


def _tell_lists(result: Result, pages: dict[str, list[Seen]], many: int) -> None:
    columns = ("", f"p50 ms, {_FEW:,}", f"p50 ms, {many:,}", f"p99 ms, {many:,}", "ratio of p50")
    table = Table("(c) Lists, one client, 20 Events a page", columns)
    for name, aimed in _FILTERS.items():
        small, large = pages[f"{name}/{_FEW}"], pages[f"{name}/{many}"]
        grown = middle([run.p50 / base.p50 for run, base in zip(large, small, strict=True)])
        table.add(name, *(middle([run.p50 for run in seen]) for seen in (small, large)), middle([run.p99 for run in large]), grown)
        if aimed:
            result.targets.append(Target(f"list p50, {many:,} over {_FEW:,}: {name}", grown, 1.5, at_most=True))
    result.tables.append(table)


def filled(ground: Ground, total: int, result: Result, *, what: str = "schedule") -> str:
    """Create a database with Events and their views; return its address."""
    url = ground.database(f"bench_{what}_{total}")
    since = time.perf_counter()
    fill(url, what, total=total)
    filled = time.perf_counter()
    _, events = uvloop.run(rebuild(url, ("record_view", "event_view")))
    rebuilt = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE) events")
    times = f"appended in {filled - since:.0f} s, view built in {rebuilt - filled:.0f} s"
    text = f"{total:,} Events, {events.events:,} domain events: {times}"
    print(f"  {text}", flush=True)
    result.raw[f"filling {total}"] = text
    return url


def by_id(server: Served, total: int) -> list[str]:
    numbers = Random(schedule.SEED).sample(range(total), min(total, _SAMPLE))
    return [server.request("GET", f"/api/event/{schedule.key(number, space=2)}") for number in numbers]


def _list(server: Served, name: str, total: int) -> list[str]:
    random = Random(schedule.SEED)
    return [server.request("GET", _path(name, total, random)) for _ in range(_REQUESTS)]


def _path(name: str, total: int, random: Random) -> str:
    day = schedule.BEGIN + timedelta(days=random.randrange(max(total // schedule.A_DAY - 2, 1)))
    window = {"from": schedule.wire(day), "to": schedule.wire(day + timedelta(days=1))}
    match name:
        case "day and room":
            parameters = {**window, "room": schedule.room_name(random.randrange(schedule.ROOMS))}
        case "day and state":
            parameters = {**window, "eventState": "VOD_PUBLIC"}
        case "search within a day":
            parameters = {**window, "search": random.choice(schedule.CLUBS)}
        case "live now":
            parameters = {"eventState": "LIVE_PUBLISHED,LIVE_UNPUBLISHED"}
        case "refId look-up":
            return f"/api/event/reference?id={quote(schedule.reference(random.randrange(total)))}"
        case "search everywhere":
            parameters = {"search": f"{random.randrange(total):07d}"}
        case _:
            parameters = {}
    return f"/api/event/?{urlencode(parameters)}"
