"""The cost of ten thousand webhooks of Events compared with ten: fan-out of notifications, lists and pages, and a further
webhook."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import psycopg
import uvloop

from bench import schedule
from bench.feeds import consume
from bench.fill import fill, rebuild
from bench.ground import Ground, Served, driven, in_turns, made
from bench.load import Seen
from bench.report import Result, Table, Target, middle

_FEW, _MANY = 10, 10_000
_LIVES = 5_000
"""The number of lives. In the smaller system ten of them have a webhook, in the larger one fifty."""
_ADDRESS = "https://receiver.example/all"
_WATCHED = str(schedule.key(0, space=3))
_QUESTIONS = {
    "system-wide webhooks": "/api/webhook/",
    "webhooks of an Event": f"/api/webhook/event/{_WATCHED}",
    "health of webhooks": "/api/webhook/health",
    "deliveries of all webhooks": "/api/webhook/deliveries",
}
_ADDED = "a further webhook of an Event"


def webhooks(ground: Ground) -> Result:
    """(u) 10 000 webhooks of Events compared with 10: fan-out, lists and pages, and POST of one more."""
    result = Result("webhooks")
    urls = {total: _filled(ground, total) for total in (_FEW, _MANY)}
    fanned = in_turns(
        {str(total): partial(_fan_out, url, total) for total, url in urls.items()}, rounds=max(ground.effort.rounds, 3)
    )
    few, many = ([run for run, _ in rounds] for rounds in fanned.values())
    table = Table(f"(u) Fan-out of {_LIVES * 10:,} domain events", ("", f"records/s, {_FEW}", f"records/s, {_MANY:,}", "ratio"))
    share = middle([run / base for run, base in zip(many, few, strict=True)])
    table.add("webhooks", middle(few), middle(many), share)
    result.tables.append(table)
    result.targets.append(Target(f"fan-out, {_MANY:,} webhooks of {_FEW}", share, 0.8))
    table = Table("(u) Reading the webhooks, once at the start of a fan-out", ("", f"seconds, {_FEW}", f"seconds, {_MANY:,}"))
    table.add("webhooks", *(middle([start for _, start in rounds]) for rounds in fanned.values()))
    result.tables.append(table)
    with ground.server("product", urls[_FEW]) as small, ground.server("product", urls[_MANY]) as large:
        cells: dict[str, Callable[[], Seen]] = {}
        for total, server in ((_FEW, small), (_MANY, large)):
            for _ in range(3):
                made(server, "webhook", {"webhookUrl": _ADDRESS})
            for name, path in _QUESTIONS.items():
                cells[f"{name}/{total}"] = partial(driven, server, [server.request("GET", path)], clients=1, effort=ground.effort)
            cells[f"{_ADDED}/{total}"] = partial(driven, server, [_one_more(server)], clients=1, effort=ground.effort)
        ground.settle()
        seen = in_turns(cells, rounds=max(ground.effort.rounds // 2, 2))
    table = Table("(u) Lists, pages and a POST, one client", ("", f"p50 ms, {_FEW}", f"p50 ms, {_MANY:,}", "ratio"))
    for name in (*_QUESTIONS, _ADDED):
        small_p50, large_p50 = ([run.p50 for run in seen[f"{name}/{total}"]] for total in (_FEW, _MANY))
        grown = middle([run / base for run, base in zip(large_p50, small_p50, strict=True)])
        table.add(name, middle(small_p50), middle(large_p50), grown)
        result.targets.append(Target(f"p50, {_MANY:,} webhooks over {_FEW}: {name}", grown, 1.5, at_most=True))
    result.tables.append(table)
    result.raw |= {"fan-out": fanned, "lists": seen}
    return result


def _filled(ground: Ground, total: int) -> str:
    """Fill a log with the webhooks, followed by lives of Events, of which one in a hundred has a webhook."""
    url = ground.database(f"bench_webhooks_{total}")
    fill(url, "webhooks", total=total, processes=1)
    uvloop.run(rebuild(url, ["record_view"]))
    fill(url, "lives", total=_LIVES)
    uvloop.run(rebuild(url, ["event_view"]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    return url


def _fan_out(url: str, total: int) -> tuple[float, float]:
    """Return the records per second after the webhooks, and the seconds that reading the webhooks takes before that."""
    records, seconds, start = uvloop.run(consume(url, after=total))
    return records / (seconds - start), start


def _one_more(server: Served) -> str:
    return server.request("POST", "/api/webhook/event/", body=f'{{"webhookUrl": "{_ADDRESS}", "eventId": "{_WATCHED}"}}')
