"""Reads of the whole log: rebuilding a view, and verifying the hash chain."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import uvloop

from bench.fill import fill, rebuild
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from projections.audit.verify import verify

_VIEW = "event_view"


def rebuilds(ground: Ground) -> Result:
    """(d) The Event view from 100 000 domain events: whole lives of ten each, and single registrations."""
    lives, beginnings = ground.database("bench_lives"), ground.database("bench_beginnings")
    fill(lives, "lives", total=10_000)
    fill(beginnings, "beginnings", total=100_000)
    cells: dict[str, Callable[[], tuple[int, float]]] = {
        "10 000 Events of 10 domain events": partial(_rebuild, lives),
        "100 000 Events of 1 domain event": partial(_rebuild, beginnings),
    }
    ground.settle()
    seen = in_turns(cells, rounds=3)
    table = Table("(d) Rebuild of the Event view: fold, COPY, indexes, flip", ("", "events/s", "seconds"))
    for name, rounds in seen.items():
        table.add(name, middle([events / took for events, took in rounds]), middle([took for _, took in rounds]))
    rate = middle([events / took for events, took in seen["10 000 Events of 10 domain events"]])
    return Result("rebuild", [table], [Target("rebuild", rate, 50_000, "events/s")], raw=dict(seen))


def _rebuild(url: str) -> tuple[int, float]:
    since = time.perf_counter()
    (made,) = uvloop.run(rebuild(url, (_VIEW,)))
    return made.events, time.perf_counter() - since


def verification(ground: Ground) -> Result:
    """(f) `audit verify` of the chain of at least 300 000 domain events."""
    url = ground.database("bench_verify")
    fill(url, "lives", total=30_000)
    ground.settle()
    seen = in_turns({"verify": partial(verified, url)}, rounds=3)["verify"]
    rate = middle([events / took for events, took in seen])
    table = Table("(f) Verifying the hash chain from stored bytes", ("", "events/s", "seconds"))
    table.add(f"{seen[0][0]:,} domain events", rate, middle([took for _, took in seen]))
    return Result("verify", [table], [Target("verify", rate, 100_000, "events/s")], raw={"verify": seen})


def verified(url: str) -> tuple[int, float]:
    since = time.perf_counter()
    verdict = verify(url)
    took = time.perf_counter() - since
    if not verdict.valid:
        raise RuntimeError(f"the chain is broken at {verdict.first_bad_position}: {verdict.reason}")
    return verdict.checked, took
