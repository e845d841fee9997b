"""`python -m bench.instructions OTHER`: processor instructions per request, in this checkout and in another one with its own
`.venv`.

Valgrind's callgrind counts them with one client, so that each write is an append of its own, and without the work of PostgreSQL.
Other load on the machine changes the counts by a few per cent, but rates by half. With a ratio above 1 this checkout needs fewer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import psycopg

from bench.compare import migrated
from bench.ground import Effort, Ground, Served, event_patches, event_posts, ground, linked_posts, python_of
from bench.load import Job, run
from bench.report import Table
from bench.serve import KEY

_HERE = Path(__file__).parents[1]
_REQUESTS = 400
_EVENTS = 300
REQUESTS: dict[str, Callable[[Served, list[str]], list[str]]] = {
    "POST": lambda served, _: event_posts(served),
    "POST with five links": lambda served, _: linked_posts(served),
    "PATCH": lambda served, keys: event_patches(served, keys),
    "GET": lambda served, keys: [served.request("GET", f"/api/event/{key}") for key in keys],
    "list of 20": lambda served, _: [served.request("GET", "/api/event/?pageSize=20")],
}


def _control(pid: int, command: str) -> None:
    subprocess.run(["callgrind_control", command, str(pid)], check=True, capture_output=True)


def counted(base: Ground, checkout: Path, *, name: str, request: str) -> float:
    """Return the number of instructions that the server needs for one request, in a process of its own."""
    label = f"{name}_{re.sub('[^a-z0-9]+', '_', request.lower())}"
    url, home, environment = migrated(base, checkout, label)
    counts = Path(home) / "instructions"
    server = subprocess.Popen(
        [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={counts}"),
            *(python_of(checkout), "-m", "bench.serve", "product", "--home", home),
        ],
        cwd=checkout,
        env={**os.environ, **environment, "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{url}\n")
        server.stdin.close()
        served, serials = Served(int(server.stdout.readline()), KEY), count(1)

        def load(requests: list[str], total: int) -> None:
            seen = run(Job(served.port, requests, 1, 0, serial=next(serials) * 10_000_000, total=total))
            if seen.refused:
                raise RuntimeError(f"{seen.refused} answers were no success: {seen.statuses}")

        load(event_posts(served), _EVENTS)
        with psycopg.connect(url) as connection:
            keys = [str(key) for (key,) in connection.execute("SELECT id FROM event_view ORDER BY id")]
        requests = REQUESTS[request](served, keys)
        load(requests, _EVENTS)
        _control(server.pid, "--instr=on")
        load(requests, _REQUESTS)
        _control(server.pid, "--dump")
    finally:
        server.terminate()
        server.wait()
    totals = re.findall(r"^(?:summary|totals): (\d+)", counts.with_name("instructions.1").read_text(), re.MULTILINE)
    return int(totals[0]) / _REQUESTS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument(
        "--only", nargs="*", choices=REQUESTS, default=list(REQUESTS), help="measure only the requests with these names"
    )
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    table = Table("processor instructions for a request, in thousands", ("", "this", "other", "ratio"))
    with ground(Effort(quick=True, events=0)) as base:
        for request in given.only:
            this = counted(base, _HERE, name="this", request=request)
            other = counted(base, given.other.resolve(), name="other", request=request)
            print(f"{request}: {other / this:.2f}", flush=True)
            table.add(request, this / 1000, other / 1000, other / this)
    table.show()


if __name__ == "__main__":
    main()
