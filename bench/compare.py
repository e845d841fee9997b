"""`python -m bench.compare OTHER`: compare this checkout with another one that has its own `.venv`, on one PostgreSQL and in turns.

A ratio compares both checkouts round by round: above 1, this one is faster. The table also shows the processor time that the server
process needs for a request, which other load on the machine hardly changes. It shows what a change of the code costs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

from bench.engine import posted
from bench.ground import Effort, Ground, Served, event_patches, event_posts, ground, in_turns, linked_posts, python_of
from bench.load import Job, Seen, run
from bench.report import Table, middle
from bench.serve import KEY
from bench.speke import known_keys
from bench.writes import ratio

_HERE = Path(__file__).parents[1]
_CLIENTS = 32
_REQUESTS = 3_000
_EVENTS = 4_000


def migrated(base: Ground, checkout: Path, name: str) -> tuple[str, str, dict[str, str]]:
    """Create a database with a checkout of the product. Return its address, a home, and the environment for processes of the
    checkout."""
    url, home = base.plain_database(f"bench_{name}"), str(base.home / name)
    Path(home).mkdir(exist_ok=True)
    environment = {"MEDIALEDGER_DATABASE_URL": url, "MEDIALEDGER_HOME": home, "PYTHONPATH": str(checkout)}
    migrate = [str(python_of(checkout)), "-m", "api.cli.main", "migrate"]
    subprocess.run(migrate, cwd=checkout, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    return url, home, environment


@contextmanager
def _served(base: Ground, checkout: Path, name: str) -> Iterator[tuple[Served, str]]:
    """Run the product of a checkout on a database of its own, which the same checkout creates."""
    url, home, environment = migrated(base, checkout, name)
    command = ["bench.serve", "product", "--home", home]
    with base.process(name, command, input_line=url, environment=environment, checkout=checkout) as port:
        yield Served(int(port), KEY), url


def _processor_seconds(pid: int) -> float:
    """Return the user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cells(base: Ground, served: Served, url: str, *, pid: int) -> dict[str, Callable[[], Seen]]:
    """Return what is measured of a checkout, by name. Creates the Events to read and to change. `Seen.cpu_us` is the server's."""
    serials = count()

    def load(requests: list[str]) -> Seen:
        before = _processor_seconds(pid)
        job = Job(served.port, requests, _CLIENTS, 0, serial=next(serials) * 10_000_000, total=_REQUESTS)
        seen = run(job)
        if seen.refused:
            raise RuntimeError(f"{seen.refused} answers were no success: {seen.statuses}")
        return replace(seen, cpu_us=(_processor_seconds(pid) - before) / _REQUESTS * 1e6)

    keys: list[str] = []
    while len(keys) < _EVENTS:
        load(event_posts(served))
        with psycopg.connect(url) as connection:
            keys = [str(key) for (key,) in connection.execute(f"SELECT id FROM event_view ORDER BY id LIMIT {_EVENTS}")]
    key_requests = known_keys(served)
    load(key_requests)
    requests = {
        "POST": event_posts(served),
        "POST with five links": linked_posts(served),
        "PATCH": event_patches(served, keys),
        "GET": [served.request("GET", f"/api/event/{key}") for key in keys],
        "list of 20": [served.request("GET", "/api/event/?pageSize=20")],
        "SPEKE, known key": key_requests,
        "job accepted": [posted(served)],
    }
    return {name: partial(load, each) for name, each in requests.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="measure only the requests with these names")
    given = parser.parse_args()
    with ground(Effort(quick=True, events=0)) as base, ExitStack() as stack:
        cells: dict[str, Callable[[], Seen]] = {}
        for name, checkout in (("this", _HERE), ("other", given.other.resolve())):
            served, url = stack.enter_context(_served(base, checkout, name))
            measured = _cells(base, served, url, pid=base.pids[name])
            cells |= {f"{key} {name}": run for key, run in measured.items() if not given.only or key in given.only}
        base.settle()
        seen = in_turns(cells, rounds=given.rounds)
    table = Table(
        f"this checkout compared with the other, {_CLIENTS} clients",
        ("", "req/s", "other req/s", "p99 ms", "ratio", "CPU µs", "other CPU µs", "ratio"),
    )
    for key in dict.fromkeys(name.rpartition(" ")[0] for name in cells):
        this, other = seen[f"{key} this"], seen[f"{key} other"]
        table.add(
            key,
            middle([run.rate for run in this]),
            middle([run.rate for run in other]),
            middle([run.p99 for run in this]),
            ratio(this, other),
            middle([run.cpu_us for run in this]),
            middle([run.cpu_us for run in other]),
            middle([other_run.cpu_us / run.cpu_us for run, other_run in zip(this, other, strict=True)]),
        )
    table.show()


if __name__ == "__main__":
    main()
