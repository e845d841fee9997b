"""The environment of the benchmarks: a PostgreSQL with real fsync, its databases, servers, and alternating rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeVar
from urllib.request import Request, urlopen

import psycopg
import uvloop

from api.wiring.core import prepare
from bench import load, schedule
from bench.load import NO_MORE, Job, Seen
from bench.serve import KEY
from workers.adapters.embedded_postgres import DATABASE, EmbeddedPostgres

T = TypeVar("T")
_serials = count(1)


@dataclass(frozen=True, slots=True)
class Effort:
    """The duration and size of a run. A quick run only shows whether something is broken."""

    quick: bool
    events: int
    """The number of events of the large log."""

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5

    @property
    def seconds(self) -> float:
        return 1.5 if self.quick else 4.0

    @property
    def many(self) -> int:
        """Return the number of Events of the large schedule."""
        return 100_000 if self.quick else 1_000_000


@dataclass(frozen=True, slots=True)
class Served:
    """A running server and its API key."""

    port: int
    key: str | None

    def request(
        self, method: str, path: str, *, body: str | None = None, kind: str = "application/json", more: Mapping[str, str] = NO_MORE
    ) -> str:
        """Return a request to this server, as text. `more` holds further headers."""
        return load.request(method, path, body=body, kind=kind, key=self.key, more=more)


class Ground:
    """Databases and servers for benchmarks; everything is deleted at the end."""

    def __init__(self, home: Path, postgres: EmbeddedPostgres, *, url: str, effort: Effort) -> None:
        self.home = home
        self.effort = effort
        self.programs = postgres.programs
        self.pids: dict[str, int] = {}
        """The ids of the running processes, by name."""
        self._url = url

    def database(self, name: str) -> str:
        """Create an empty database with the product's schema, and return its address."""
        url = self.plain_database(name)
        uvloop.run(prepare(url))
        return url

    def plain_database(self, name: str) -> str:
        with psycopg.connect(self._url, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            admin.execute(f'CREATE DATABASE "{name}"'.encode())
        return self._url.replace(f"/{DATABASE}?", f"/{name}?", 1)

    def settle(self) -> None:
        """Run a checkpoint now, so that earlier writes do not cause one during a measurement."""
        with psycopg.connect(self._url, autocommit=True) as admin:
            admin.execute("CHECKPOINT")

    @contextmanager
    def process(
        self,
        name: str,
        command: Sequence[str],
        *,
        input_line: str = "",
        environment: Mapping[str, str] = NO_MORE,
        checkout: Path | None = None,
    ) -> Iterator[str]:
        """Run a program of the product, or of another checkout of it, that prints a line when it is ready, and return the line.
        Its input may hold a password, so it is not an argument."""
        log = self.home / f"{name}.log"
        with log.open("a") as written:
            running = subprocess.Popen(
                [sys.executable if checkout is None else python_of(checkout), "-m", *command],
                cwd=checkout,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                text=True,
            )
            try:
                assert running.stdin is not None
                assert running.stdout is not None
                running.stdin.write(f"{input_line}\n")
                running.stdin.close()
                self.pids[name] = running.pid
                line = running.stdout.readline()
                if not line:
                    raise RuntimeError(f"{name} did not start: {log.read_text()[-2000:]}")
                yield line
            finally:
                running.terminate()
                running.wait()

    @contextmanager
    def server(self, kind: str, url: str = "", *, environment: Mapping[str, str] = NO_MORE) -> Iterator[Served]:
        command = ["bench.serve", kind, "--home", str(self.home)]
        with self.process(kind, command, input_line=url, environment=environment) as port:
            yield Served(int(port), KEY if kind in ("product", "working", "probing") else None)


def python_of(checkout: Path) -> Path:
    """Return the interpreter of the environment into which `make` installed the checkout."""
    return checkout / ".venv" / "bin" / "python"


@contextmanager
def ground(effort: Effort) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="medialedger-bench-", ignore_cleanup_errors=True) as place:
        home = Path(place)
        postgres = EmbeddedPostgres(home)
        try:
            yield Ground(home, postgres, url=postgres.start(), effort=effort)
        finally:
            postgres.stop()


def in_turns(cells: Mapping[str, Callable[[], T]], *, rounds: int) -> dict[str, list[T]]:
    """Measure each cell once per round, so that other load on the machine affects all; each round starts with another cell."""
    seen: dict[str, list[T]] = {name: [] for name in cells}
    names = list(cells)
    for number in range(rounds):
        begin = number * (len(names) // 2 + 1) % len(names)
        for name in (*names[begin:], *names[:begin]):
            seen[name].append(cells[name]())
    return seen


def driven(server: Served, requests: list[str], *, clients: int, effort: Effort) -> Seen:
    """Put load on a server for the time of the effort."""
    seen = load.run(Job(server.port, requests, clients, effort.seconds, serial=next(_serials) * 10_000_000))
    if seen.refused:
        print(f"  warning: {seen.refused} answers were no success and do not count: {seen.statuses}", flush=True)
    return seen


def trivial_posts(server: Served) -> list[str]:
    return [server.request("POST", "/echo", body=body) for body in schedule.post_bodies(500)]


def event_posts(server: Served) -> list[str]:
    return [server.request("POST", "/api/event/", body=body) for body in schedule.post_bodies(500)]


def linked_posts(server: Served) -> list[str]:
    """Return requests that create Events with a room, a type, a category and two tags each. Those resources are created over
    HTTP first."""
    rooms = [made(server, "room", {"name": f"Studio {number}"}) for number in range(20)]
    types = [made(server, "eventtype", {"name": f"Type {number}"}) for number in range(10)]
    categories = [made(server, "category", {"name": f"Category {number}"}) for number in range(10)]
    random = Random(schedule.SEED)
    links = (
        {
            "roomId": random.choice(rooms),
            "eventTypeId": random.choice(types),
            "categoryId": random.choice(categories),
            "tags": [{"name": f"tag {number}"} for number in random.sample(range(200), 2)],
        }
        for _ in range(500)
    )
    bodies = (json.dumps({**json.loads(body), **linked}) for body, linked in zip(schedule.post_bodies(500), links, strict=True))
    return [server.request("POST", "/api/event/", body=body) for body in bodies]


def made(server: Served, path: str, body: dict[str, str]) -> str:
    """Post a resource to the media API and return its id."""
    headers = {"Content-Type": "application/json", "API-KEY": server.key or ""}
    address = f"http://127.0.0.1:{server.port}/api/{path}/"
    with urlopen(Request(address, data=json.dumps(body).encode(), headers=headers)) as answer:
        made = json.load(answer)
    return str(made.get("id") or made["Id"])


def event_patches(server: Served, keys: list[str]) -> list[str]:
    return [
        server.request("PATCH", f"/api/event/{key}", body=schedule.patch_body(), kind="application/json-patch+json") for key in keys
    ]
