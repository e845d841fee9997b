"""POST and PATCH of Events over HTTP, compared with a trivial POST and with the CRUD twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import psycopg

from bench import schedule
from bench.ground import Ground, Served, driven, event_patches, event_posts, in_turns, linked_posts, trivial_posts
from bench.load import Seen
from bench.report import Result, Table, Target, middle

_CLIENTS = (1, 8, 32)
_POOL = 4_000
_HEADINGS = ("", "clients", "req/s", "p50 ms", "p99 ms", "ratio", "load us/req")


def http(ground: Ground) -> Result:
    """(a) POST and PATCH of Events at 1, 8 and 32 clients, each compared with a trivial validated POST."""
    url = ground.database("bench_http")
    with ground.server("trivial") as trivial, ground.server("product", url) as product:
        keys = _some_events(ground, product, url)
        echoes, posts, patches = trivial_posts(trivial), event_posts(product), event_patches(product, keys)
        kinds = {"trivial POST": (trivial, echoes), "POST": (product, posts), "PATCH": (product, patches)}
        cells: dict[str, Callable[[], Seen]] = {
            f"{name} {clients}": partial(driven, server, requests, clients=clients, effort=ground.effort)
            for clients in _CLIENTS
            for name, (server, requests) in kinds.items()
        }
        cells["POST with five links 32"] = partial(driven, product, linked_posts(product), clients=32, effort=ground.effort)
        cells["PATCH one Event 32"] = partial(driven, product, patches[:1], clients=32, effort=ground.effort)
        ground.settle()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(a) HTTP writes; ratio: of the trivial POST with as many clients", _HEADINGS)
    for name in cells:
        kind, _, clients = name.rpartition(" ")
        _add(table, kind, clients, seen[name], base_runs=seen[f"trivial POST {clients}"])
    targets = [
        Target("POST of trivial, 32 clients", ratio(seen["POST 32"], seen["trivial POST 32"]), 0.45),
        Target("PATCH of trivial, 32 clients", ratio(seen["PATCH 32"], seen["trivial POST 32"]), 0.40),
    ]
    return Result("http", [table], targets, raw=seen)


def twin(ground: Ground) -> Result:
    """(e) POST compared with a plain CRUD application on the same PostgreSQL, at 32 clients."""
    ours, theirs = ground.database("bench_ours"), ground.plain_database("bench_twin")
    with ground.server("trivial") as trivial, ground.server("product", ours) as product, ground.server("twin", theirs) as crud:
        twins = [crud.request("POST", "/event", body=body) for body in schedule.post_bodies(500)]
        cells: Mapping[str, Callable[[], Seen]] = {
            "trivial POST": partial(driven, trivial, trivial_posts(trivial), clients=32, effort=ground.effort),
            "POST": partial(driven, product, event_posts(product), clients=32, effort=ground.effort),
            "CRUD twin": partial(driven, crud, twins, clients=32, effort=ground.effort),
        }
        ground.settle()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(e) POST compared with a CRUD twin; ratio: of the trivial POST", _HEADINGS)
    for name, values in seen.items():
        _add(table, name, "32", values, base_runs=seen["trivial POST"])
    target = Target("POST of CRUD twin, 32 clients", ratio(seen["POST"], seen["CRUD twin"]), 2.5)
    return Result("twin", [table], [target], raw=dict(seen))


def ratio(ours: Sequence[Seen], others: Sequence[Seen]) -> float:
    """Return the middle ratio of the rates, compared round by round: both of a round had the same conditions."""
    return middle([run.rate / base.rate for run, base in zip(ours, others, strict=True)])


def _add(table: Table, kind: str, clients: str, seen: Sequence[Seen], *, base_runs: Sequence[Seen]) -> None:
    table.add(
        kind,
        clients,
        middle([run.rate for run in seen]),
        middle([run.p50 for run in seen]),
        middle([run.p99 for run in seen]),
        ratio(seen, base_runs),
        middle([run.cpu_us for run in seen]),
    )


def _some_events(ground: Ground, product: Served, url: str) -> list[str]:
    """Return the ids of Events to change, few enough that the process has them in its cache."""
    while True:
        driven(product, event_posts(product), clients=32, effort=ground.effort)
        with psycopg.connect(url) as connection:
            keys = [str(key) for (key,) in connection.execute(f"SELECT id FROM event_view ORDER BY id LIMIT {_POOL}")]
        if len(keys) == _POOL:
            return keys
