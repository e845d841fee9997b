"""GET by id with one process of the API and with two, which share the port, as `medialedger api` starts them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.ground import Ground, Served, driven, in_turns
from bench.load import Seen
from bench.reads import by_id, filled
from bench.report import Result, Table, Target, middle
from bench.serve import KEY
from bench.writes import ratio

_EVENTS = 10_000
_CLIENTS = 64
_TICKS = os.sysconf("SC_CLK_TCK")
_WANTED = 1.5


def cores(ground: Ground) -> Result:
    """(s) GET by id with one and with two processes of the API, and the processor time that server, PostgreSQL and load take."""
    result = Result("cores")
    url = filled(ground, _EVENTS, result, what="schedule")
    with _api(ground, url, processes=1) as (single, first), _api(ground, url, processes=2) as (double, second):
        costs: dict[str, list[tuple[float, float]]] = {"one process": [], "two processes": []}
        cells: dict[str, Callable[[], Seen]] = {
            name: partial(_measured, ground, server, pid=pid, costs=costs[name])
            for name, server, pid in (("one process", single, first), ("two processes", double, second))
        }
        ground.settle()
        for cell in cells.values():
            cell()
        for measured in costs.values():
            measured.clear()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table(
        f"(s) GET by id at {_CLIENTS} clients on {os.cpu_count()} cores; ratio: of one process",
        ("", "req/s", "p50 ms", "p99 ms", "ratio", "server us/req", "load us/req", "cores used by both"),
    )
    for name, values in seen.items():
        table.add(
            name,
            *(middle([getattr(value, part) for value in values]) for part in ("rate", "p50", "p99")),
            ratio(values, seen["one process"]),
            middle([cost for cost, _ in costs[name]]),
            middle([value.cpu_us for value in values]),
            middle([used for _, used in costs[name]]),
        )
    result.tables.append(table)
    result.targets.append(Target("GET by id, two processes of one", ratio(seen["two processes"], seen["one process"]), _WANTED))
    result.raw |= {"gets": seen, "costs": costs}
    return result


def _measured(ground: Ground, server: Served, *, pid: int, costs: list[tuple[float, float]]) -> Seen:
    """Measure one run. Adds to `costs` the server's processor time per request, and the number of cores that server and load
    used together."""
    before = processor_seconds(pid)
    seen = driven(server, by_id(server, _EVENTS), clients=_CLIENTS, effort=ground.effort)
    spent = processor_seconds(pid) - before
    requests = seen.rate * (ground.effort.seconds + 0.5)  # the load generator warms up for half a second
    costs.append((1e6 * spent / requests, spent / requests * seen.rate + seen.cpu_us * seen.rate / 1e6))
    return seen


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its children, without PostgreSQL."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(processor_seconds(int(child)) for child in children)


@contextmanager
def _api(ground: Ground, url: str, *, processes: int) -> Iterator[tuple[Served, int]]:
    """Run a server; yield it and the id of its first process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = f"api of {processes}"
    given = {"HOME": ground.home / "cores", "DATABASE_URL": url, "PORT": port, "ADMIN_API_KEY": KEY, "API_PROCESSES": processes}
    environment = {f"MEDIALEDGER_{variable}": str(value) for variable, value in given.items()}
    with ground.process(name, ["api.cli.main", "api"], environment=environment):
        yield Served(port, KEY), ground.pids[name]
