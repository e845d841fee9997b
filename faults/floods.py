"""Floods by clients: large jobs and Events, lists that anyone may request, responses that are not read, endless heads.

The scenario measures the memory of all Python processes of `medialedger up` together, and how long `/livez` takes meanwhile. Memory
is PSS: a page that processes share is counted once. The processes are forked, so by RSS the same code would count for each of them,
and all of a process twice at the moment when it starts another. The first process is not forked from the fork server of the tests,
which holds pages that the product does not have.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from faults.findings import markdown
from projections.kernel.sizes import MIB
from tests.support.product import migrated_home, products

NAME: Final = "floods"
MEANING: Final = "large jobs and Events, lists without a key, unread responses, endless heads; memory and the time of /livez"
_PROCESSES: Final = max(len(os.sched_getaffinity(0)), 2)
PROCESSES: Final = str(_PROCESSES)
"""The number of processes that `medialedger up` runs by default: one of the workers, and one of the API for each further core."""
MEMORY: Final = 512 + 64 * (_PROCESSES - 2)
"""The limit in MiB of all Python processes together: that of two processes, and what each further one holds when it is idle."""
PATIENCE: Final = 1.0
"""The number of seconds within which `/livez` must answer, on a machine that the floods share with the clients that cause them."""
_KEY: Final = "an-admin-key-of-the-floods"
_LARGE: Final = 1_000_000


class Effort(NamedTuple):
    jobs: int
    events: int
    listing: int
    unread: int
    heads: int
    seconds: float


FULL: Final = Effort(jobs=120, events=150, listing=8, unread=100, heads=20, seconds=40)
QUICK: Final = Effort(jobs=120, events=40, listing=8, unread=100, heads=20, seconds=10)


@dataclass(frozen=True, slots=True)
class Flooded:
    """The maxima that were measured during one flood, and the faults. Memory is in MiB."""

    name: str
    memory: float
    slowest: float
    faults: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        return self.memory <= MEMORY and self.slowest <= PATIENCE and not self.faults


class Watch:
    """Measures the memory of a process and its descendants, and `/livez`, in separate threads, until it is closed.

    Processes with the text `apart` in their command line do not count.
    """

    def __init__(self, process: int, address: str, *, apart: str = "") -> None:
        self._process = process
        self._apart = apart.encode()
        self._address = urlsplit(address)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=turn, daemon=True) for turn in (self._weigh, self._ask)]
        self.memory = self.slowest = 0.0
        self._begun = self.processor
        self.faults: set[str] = set()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def begin(self) -> None:
        self.memory = self.slowest = 0.0
        self._begun = self.processor
        self.faults.clear()

    @property
    def processor(self) -> tuple[float, float]:
        """The seconds for which the processes have had a processor, and for which they have waited for one, as on a machine with
        other work. A process that has ended meanwhile does not count."""
        used, waited = 0, 0
        for process in self._weighed():
            with suppress(OSError):
                part = Path(f"/proc/{process}/schedstat").read_text().split()
                used, waited = used + int(part[0]), waited + int(part[1])
        return used / 1e9, waited / 1e9

    def since(self) -> tuple[float, float]:
        """Return the same seconds, counted since `begin`."""
        now = self.processor
        return now[0] - self._begun[0], now[1] - self._begun[1]

    def _weigh(self) -> None:
        while not self._ended.wait(0.2):
            self.memory = max(self.memory, sum(map(_memory, self._weighed())) / MIB)

    def _weighed(self) -> Iterator[int]:
        for process in _descendants(self._process):
            if not self._apart or self._apart not in _command(process):
                yield process

    def _ask(self) -> None:
        connection = HTTPConnection(self._address.hostname or "", self._address.port, timeout=60)
        while not self._ended.wait(0.05):
            since = time.monotonic()
            try:
                connection.request("GET", "/livez")
                if connection.getresponse().read() is None:
                    return
            except (OSError, HTTPException) as fault:
                self.faults.add(f"/livez: {type(fault).__name__}")
                connection.close()
            self.slowest = max(self.slowest, time.monotonic() - since)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _descendants(process: int) -> Iterator[int]:
    """Yield the process and its descendants, if they run Python."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents.setdefault(_parent(int(entry)), []).append(int(entry))
            except OSError:
                continue
    waiting = [process]
    while waiting:
        descendant = waiting.pop()
        waiting += parents.get(descendant, ())
        try:
            if os.path.basename(os.readlink(f"/proc/{descendant}/exe")).startswith("python"):
                yield descendant
        except OSError:
            continue


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _memory(process: int) -> int:
    """Return the memory share of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


class Clients:
    """The clients that cause floods. They read and drop their responses, or do not read them."""

    def __init__(self, address: str, effort: Effort) -> None:
        parts = urlsplit(address)
        self._where = parts.hostname or "", parts.port or 0
        self._effort = effort
        self.http = httpx.AsyncClient(base_url=address, headers={"API-KEY": _KEY, "client": "admin"}, timeout=60)
        self.faults: list[str] = []

    async def jobs(self) -> None:
        """Submit jobs of a megabyte, which are refused, and jobs of the largest permitted size."""
        arrays: list[Any] = [[]]
        for size, expected in ((_LARGE, 400), (60_000, 200)):
            parameters = {"content_id": "film", "url": "http://127.0.0.1:1/a", "custom_data": arrays * (size // 4)}
            body = {"job": {"workflow": "http_fetch_verify", "run_at": "2099-01-01T00:00:00Z"}, "parameters": parameters}
            await self._posted("/engine/job", body, times=self._effort.jobs, expected=expected)

    async def events(self) -> None:
        await self._posted("/api/event/", {"title": "large", "description": "x" * _LARGE}, times=self._effort.events, expected=200)

    async def _posted(self, path: str, body: object, *, times: int, expected: int) -> None:
        content, gate = json.dumps(body, separators=(",", ":")).encode(), asyncio.Semaphore(16)

        async def once() -> None:
            async with gate:
                answer = await self.http.post(path, content=content, headers={"content-type": "application/json"})
                while answer.status_code == 503 and "retry-after" in answer.headers:
                    await asyncio.sleep(float(answer.headers["retry-after"]))
                    answer = await self.http.post(path, content=content, headers={"content-type": "application/json"})
            if answer.status_code != expected:
                self.faults.append(f"{path}: {answer.status_code} {answer.text[:100]}")

        await asyncio.gather(*(once() for _ in range(times)))

    async def all_at_once(self) -> None:
        """Request lists, leave responses unread, and send endless heads, for a while."""
        lists = ["/engine/jobs?items=1000", "/api/event/?pageSize=20", "/api/event/?pageSize=1000"]
        callers = [self._listing(lists[number % 2 * (number % 3)]) for number in range(self._effort.listing)]
        unread = [self._unread(lists[number % 2]) for number in range(self._effort.unread)]
        heads = [self._head() for _ in range(self._effort.heads)]
        tasks = [asyncio.create_task(act) for act in (*callers, *unread, *heads)]
        await asyncio.wait(tasks, timeout=self._effort.seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listing(self, path: str) -> None:
        while True:
            async with self._connection() as (reader, writer):
                writer.write(self._get(path))
                while await reader.read(MIB):
                    pass

    async def _unread(self, path: str) -> None:
        """Request a list without reading it, again whenever the connection was closed."""
        while True:
            async with self._connection() as (_, writer):
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(self._get(path))
                while not writer.is_closing():
                    await asyncio.sleep(0.5)
                    writer.write(b"\r\n")

    async def _head(self) -> None:
        while True:
            async with self._connection() as (_, writer):
                writer.write(b"GET / HTTP/1.1\r\n")
                while True:
                    writer.write(b"a:\r\n" * 10_000)
                    await writer.drain()

    def _get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAPI-KEY: {_KEY}\r\nConnection: close\r\n\r\n".encode()

    def _connection(self) -> _Connection:
        return _Connection(*self._where)


class _Connection:
    """A connection that the server may close at any time."""

    def __init__(self, host: str, port: int) -> None:
        self._where = host, port
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, self._writer = await asyncio.open_connection(*self._where)
        return reader, self._writer

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self._writer is not None:
            self._writer.transport.abort()
        await asyncio.sleep(0.01)
        return kind is not None and issubclass(kind, OSError)


async def run_floods(folder: Path, *, effort: Effort) -> list[Flooded]:
    """Run one flood after another against one product, which keeps the data of the earlier floods."""
    results: list[Flooded] = []
    with products() as made:
        product = await asyncio.to_thread(
            made.start_anew(migrated_home(folder / "home"), admin_api_key=_KEY, processes=PROCESSES).until_ready
        )
        watch, clients = Watch(product.process.pid, product.address), Clients(product.address, effort)

        async def flood(name: str, act: Callable[[], Awaitable[None]]) -> None:
            watch.begin()
            await act()
            results.append(Flooded(name, watch.memory, watch.slowest, [*sorted(watch.faults), *clients.faults[:3]]))

        try:
            await flood("before", lambda: asyncio.sleep(1))
            await flood("large jobs", clients.jobs)
            await flood("large Events", clients.events)
            await flood("lists, unread responses, endless heads", clients.all_at_once)
            await flood("after", lambda: asyncio.sleep(2))
        finally:
            await asyncio.to_thread(watch.close)
            await clients.http.aclose()
    return results


def table(results: Sequence[Flooded]) -> str:
    lines = []
    for result in results:
        holds = "yes" if result.holds else f"NO {'; '.join(result.faults)}"
        lines.append((result.name, f"{result.memory:.0f}", f"{result.slowest * 1000:.0f} ms", holds))
    return markdown(("flood", f"MiB, of {MEMORY}", "slowest /livez", "holds"), lines)
