"""POST of Events while consoles follow the changes, compared with POST without consoles."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.cores import processor_seconds
from bench.ground import Ground, Served, driven, event_posts, in_turns
from bench.load import Seen
from bench.report import Result, Table, Target, middle
from bench.writes import ratio

_CONSOLES = 200
_PEOPLE = 4
"""The number of clients with the role viewer whose keys the consoles log in with: a key has at most 100 sessions."""
_CLIENTS = 32
_WANTED = 0.9
_ALONE, _FOLLOWED = "alone", f"with {_CONSOLES} consoles"


@dataclass(slots=True)
class _Costs:
    """Costs by round: of the server in microseconds per request and in MB; of the consoles in cores, and the changes that they
    received."""

    server: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    readers: list[float] = field(default_factory=list)
    got: list[dict[str, int]] = field(default_factory=list)


def consoles(ground: Ground) -> Result:
    """(bb) POST by 32 clients while 200 consoles, each with its session, follow the changes; what the server needs"""
    url = ground.database("bench_consoles")
    with ground.server("product", url) as product:
        posts, cookies = event_posts(product), _logged_in(product)
        costs = {_ALONE: _Costs(), _FOLLOWED: _Costs()}
        cells: dict[str, Callable[[], Seen]] = {
            _ALONE: partial(_driven, ground, product, posts, costs=costs[_ALONE]),
            _FOLLOWED: partial(_followed, ground, product, posts, cookies=cookies, costs=costs[_FOLLOWED]),
        }
        ground.settle()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    return _result(seen, costs)


def _result(seen: dict[str, list[Seen]], costs: dict[str, _Costs]) -> Result:
    columns = ("", "req/s", "p50 ms", "p99 ms", "ratio", "server us/req", "server MB", "cores of the readers")
    table = Table(f"(bb) POST by {_CLIENTS} clients; ratio: of those alone", columns)
    for name, values in seen.items():
        cost = costs[name]
        table.add(
            name,
            *(middle([getattr(value, part) for value in values]) for part in ("rate", "p50", "p99")),
            ratio(values, seen[_ALONE]),
            middle(cost.server),
            middle(cost.memory),
            middle(cost.readers) if cost.readers else "",
        )
    lost = max(received["without"] for received in costs[_FOLLOWED].got)
    targets = [
        Target(f"POST {_FOLLOWED}", ratio(seen[_FOLLOWED], seen[_ALONE]), _WANTED),
        Target("consoles that were told nothing", float(lost), 0, "consoles", at_most=True),
    ]
    return Result(
        "consoles",
        [table],
        targets,
        raw={**seen, "got": costs[_FOLLOWED].got, "server_us": {n: c.server for n, c in costs.items()}},
    )


def _logged_in(product: Served) -> list[str]:
    """Create sessions and return their cookies."""
    people = [{"name": f"viewer-{number}", "roles": ["viewer"]} for number in range(_PEOPLE)]
    keys = [json.loads(_posted(product, "/api/client/", body)[1])["key"] for body in people]
    answers = [_posted(product, "/console/session", {"apiKey": key}) for key in keys for _ in range(_CONSOLES // _PEOPLE)]
    return [cookie.partition(";")[0] for cookie, _ in answers]


def _posted(product: Served, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
    """Return the cookie and the body of the response."""
    headers = {"Content-Type": "application/json", "API-KEY": product.key or ""}
    with urlopen(Request(f"http://127.0.0.1:{product.port}{path}", data=json.dumps(body).encode(), headers=headers)) as answer:
        return str(answer.headers["set-cookie"]), answer.read()


def _followed(ground: Ground, product: Served, posts: list[str], *, cookies: list[str], costs: _Costs) -> Seen:
    report_path = ground.home / "followers.json"
    command = ["bench.followers", str(product.port), str(report_path)]
    with ground.process("followers", command, input_line=json.dumps(cookies)):
        pid = ground.pids["followers"]
        before = processor_seconds(pid)
        seen = _driven(ground, product, posts, costs=costs)
        costs.readers.append((processor_seconds(pid) - before) / ground.effort.seconds)
    costs.got.append(json.loads(report_path.read_text()))
    return seen


def _driven(ground: Ground, product: Served, posts: list[str], *, costs: _Costs) -> Seen:
    pid = ground.pids["product"]
    before = processor_seconds(pid)
    seen = driven(product, posts, clients=_CLIENTS, effort=ground.effort)
    spent = processor_seconds(pid) - before
    costs.server.append(1e6 * spent / (seen.rate * (ground.effort.seconds + 0.5)))  # the load generator warms up for half a second
    costs.memory.append(_memory(pid))
    return seen


def _memory(pid: int) -> float:
    """Return the memory of a process in MB."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024
