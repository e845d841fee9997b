"""Provisioning: the Events per second that get their infrastructure, and the response times of the API during it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from urllib.request import Request, urlopen

import psycopg

from bench.ground import Ground, Served, driven, event_posts, made
from bench.load import Seen
from bench.report import Result, Table, Target, middle
from bench.serve import MASTER_KEY

_RESOURCES = 200
_LONGEST = 300.0
_DONE = "SELECT count(*) FROM events WHERE topic = 'provision.provisioned'"
_SECONDS = """
SELECT extract(epoch FROM p.recorded_at - r.recorded_at)::float8 FROM events p JOIN events r USING (originator_id)
WHERE p.topic = 'provision.provisioned' AND r.topic = 'provision.requested' ORDER BY 1
"""


def provisioning(ground: Ground) -> Result:
    """(y) Events that are provisioned in the same minute, each with a profile of 200 static resources; and calls during it."""
    count, seconds = (50, 5.0) if ground.effort.quick else (500, 60.0)
    url = ground.database("bench_provisioning")
    home = ground.home / "provisioning"
    home.mkdir(mode=0o700)
    (home / "master.key").write_bytes(MASTER_KEY)
    (home / "master.key").chmod(0o600)
    environment = {"MEDIALEDGER_DATABASE_URL": url, "MEDIALEDGER_HOME": str(home)}
    with (
        ground.server("product", url) as server,
        ground.process("provisioning", ["api.cli.main", "workers", "provisioning"], environment=environment),
        psycopg.connect(url, autocommit=True) as connection,
    ):
        profile = made(server, "infrastructureprofile", {"name": "Large", "configurationJson": _profile()})
        plan = {"infrastructureProfileId": profile}
        with ThreadPoolExecutor(8) as threads:
            events = list(threads.map(lambda number: made(server, "event", {"title": f"Event {number}", **plan}), range(2 * count)))
        ground.settle()
        alone = _calls(ground, server)
        with _asking(server, events[:count], seconds=seconds):
            meanwhile = [_calls(ground, server)]
            while _done(connection) < count - 1 and len(meanwhile) < 12:
                meanwhile.append(_calls(ground, server))
        _wait(connection, count)
        spread = [waited for (waited,) in connection.execute(_SECONDS).fetchall()]
        before = time.monotonic()
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(partial(_provision, server), events[count:]))
        asked = time.monotonic() - before
        _wait(connection, 2 * count)
        rate = count / (time.monotonic() - before)
    return _result(count, seconds, spread=spread, alone=alone, meanwhile=meanwhile, rate=rate, asked=asked)


def _result(
    count: int, seconds: float, *, spread: list[float], alone: Seen, meanwhile: list[Seen], rate: float, asked: float
) -> Result:
    p99 = spread[len(spread) * 99 // 100]
    runs = Table(
        f"(y) {count} Events with {_RESOURCES} static resources each, PROVISIONING to PROVISIONED",
        ("", "p50 s", "p99 s", "slowest s", "Events/s"),
    )
    runs.add(f"over {seconds:.0f} s", middle(spread), p99, spread[-1], count / seconds)
    runs.add(f"all at once, asked in {asked:.1f} s", "", "", "", rate)
    calls = Table("(y) POST /event/ by four clients meanwhile", ("", "req/s", "p50 ms", "p99 ms"))
    calls.add("alone", alone.rate, alone.p50, alone.p99)
    slow = max(run.p99 for run in meanwhile)
    calls.add("meanwhile, median", *(middle([getattr(run, figure) for run in meanwhile]) for figure in ("rate", "p50", "p99")))
    calls.add("meanwhile, slowest", min(run.rate for run in meanwhile), max(run.p50 for run in meanwhile), slow)
    targets = [
        Target(f"{count} Events in {seconds:.0f} s, provisioned after, p99", p99, 5, "s", at_most=True),
        Target("Events provisioned a second, all at once", rate, 10, "/s"),
        Target("POST /event/ meanwhile, p99", slow, 250, "ms", at_most=True),
    ]
    return Result("provisioning", [runs, calls], targets, raw={"waited": spread, "alone": alone, "beside": meanwhile, "rate": rate})


def _profile() -> str:
    types = ("origin", "encoder", "router", "source", "convertor")
    resources = [
        {"name": f"host-{number}", "type": types[number % len(types)], "size": "large", "ipAddress": "198.51.100.7"}
        for number in range(_RESOURCES)
    ]
    return json.dumps({"request": {"options": {"deploymentType": "static"}, "resources": resources}, "workflow": {}})


@contextmanager
def _asking(server: Served, events: list[str], *, seconds: float) -> Iterator[None]:
    """Send calls in a thread, spread over these seconds."""

    def ask() -> None:
        begin = time.monotonic()
        for number, event in enumerate(events):
            time.sleep(max(begin + seconds * number / len(events) - time.monotonic(), 0.0))
            _provision(server, event)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        asking.join()


def _provision(server: Served, event: str) -> None:
    address = f"http://127.0.0.1:{server.port}/api/provision/{event}"
    with urlopen(Request(address, method="POST", headers={"API-KEY": server.key or ""})) as answer:
        answer.read()


def _calls(ground: Ground, server: Served) -> Seen:
    return driven(server, event_posts(server), clients=4, effort=ground.effort)


def _done(connection: psycopg.Connection) -> int:
    [done] = connection.execute(_DONE).fetchone() or (0,)
    return int(done)


def _wait(connection: psycopg.Connection, count: int) -> None:
    deadline = time.monotonic() + _LONGEST
    while _done(connection) < count:
        if time.monotonic() > deadline:
            raise RuntimeError("not all Events were provisioned")
        time.sleep(0.1)
