"""A load generator: raw HTTP/1.1 over kept-alive connections, so small that the server is measured and not the generator.

It runs in a process of its own (`python -m bench.load`), reads a job as JSON from standard input and writes a `Seen` as JSON to
standard output. Requests are made beforehand; while the clock runs, only a serial number is inserted, in place of `MARK`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, cast

import uvloop

MARK = "@@@@@@@@@@@@"
NO_MORE: Mapping[str, str] = MappingProxyType({})
_DRAIN_SECONDS = 30.0
_LEAST = 5
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """A load to generate. `requests` are complete HTTP requests, sent in turn; `serial` is the first number inserted for `MARK`.

    A run of `seconds` with fewer than five responses is made longer. With a `total` the run sends as many requests, however long
    they take, and all of them are counted.
    """

    port: int
    requests: Sequence[str]
    clients: int
    seconds: float
    serial: int = 0
    warmup: float = 0.5
    total: int | None = None


@dataclass(slots=True)
class Seen:
    """The result of a run: successes per second in the window, their times in milliseconds, and this process's processor time
    for each."""

    rate: float
    p50: float
    p99: float
    cpu_us: float
    statuses: dict[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> int:
        return sum(count for status, count in self.statuses.items() if not status.startswith("2"))


def request(
    method: str,
    path: str,
    *,
    body: str | None = None,
    kind: str = "application/json",
    key: str | None = None,
    more: Mapping[str, str] = NO_MORE,
) -> str:
    """Return a request as text. The path or the body may hold `MARK`, which is as long as the number that replaces it."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *(f"{name}: {value}" for name, value in more.items())]
    if key is not None:
        lines.append(f"api-key: {key}")
    if body is not None:
        lines += [f"content-type: {kind}", f"content-length: {len(body.encode())}"]
    return "\r\n".join([*lines, "", body or ""])


def run(job: Job) -> Seen:
    """Run a load in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"], input=json.dumps(asdict(job)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {done.stderr[-2000:]}")
    return Seen(**json.loads(done.stdout))


class _Feed:
    """The requests and times of all connections."""

    def __init__(self, job: Job) -> None:
        self._pieces: list[tuple[bytes, bytes | None]] = []
        for text in job.requests:
            before, mark, after = text.partition(MARK)
            self._pieces.append((before.encode(), after.encode() if mark else None))
        self._turn = 0
        self._serial = job.serial
        self._remaining = job.total
        self.measuring = job.total is not None
        self.ending = False
        self.times: list[float] = []
        self.statuses: dict[bytes, int] = {}

    def next(self) -> bytes | None:
        if self._remaining is not None:
            if not self._remaining:
                return None
            self._remaining -= 1
        before, after = self._pieces[self._turn]
        self._turn = (self._turn + 1) % len(self._pieces)
        if after is None:
            return before
        self._serial += 1
        return b"%b%012d%b" % (before, self._serial, after)

    def took(self, seconds: float, status: bytes) -> None:
        if self.measuring:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status.startswith(b"2"):
                self.times.append(seconds)


class _Connection(asyncio.Protocol):
    """A client that sends a request, waits for the whole response, and sends the next."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed
        self._got = b""
        self._missing = -1
        self._since = 0.0
        self._status = b""
        self._transport: asyncio.Transport
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        request = self._feed.next()
        if request is None:
            self._transport.close()
            return
        self._since = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            data = self._got + data if self._got else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._got = data
                return
            self._got = b""
            self._status = data[9:12]
            self._missing = _length(data[:end]) - (len(data) - end - 4)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._missing = -1
            self._feed.took(time.perf_counter() - self._since, self._status)
            if self._feed.ending:
                self._transport.close()
            else:
                self._send()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _length(head: bytes) -> int:
    """Return the length of the body. A response without a length has no body (204): every server here sends one otherwise."""
    at = head.find(b"content-length: ")
    if at < 0:
        return 0
    end = head.find(b"\r\n", at)
    return int(head[at + 16 : end if end > 0 else len(head)])


async def _carry_out(job: Job) -> Seen:
    loop, feed = asyncio.get_running_loop(), _Feed(job)
    cpu, since = time.process_time(), time.perf_counter()
    made = [await loop.create_connection(lambda: _Connection(feed), "127.0.0.1", job.port) for _ in range(job.clients)]
    closed = asyncio.gather(*(connection.closed for _, connection in made))
    if job.total is None:
        await asyncio.sleep(job.warmup)
        feed.measuring, cpu, since = True, time.process_time(), time.perf_counter()
        await asyncio.sleep(job.seconds)
        while len(feed.times) < _LEAST and time.perf_counter() - since < _PATIENCE:  # noqa: ASYNC110 - there is no event to wait for, and it is rare
            await asyncio.sleep(0.1)
        feed.measuring, feed.ending = False, True
    else:
        await closed
    seconds, cpu = time.perf_counter() - since, time.process_time() - cpu
    await asyncio.wait_for(closed, _DRAIN_SECONDS)
    times = sorted(feed.times)
    count = len(times)
    if not count:
        raise RuntimeError(f"nothing succeeded within the window; statuses: {feed.statuses}")
    statuses = {status.decode(): number for status, number in feed.statuses.items()}
    p50, p99 = times[count // 2] * 1000, times[min(count - 1, count * 99 // 100)] * 1000
    return Seen(count / seconds, p50, p99, cpu / count * 1e6, statuses)


def main() -> None:
    given: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps(asdict(uvloop.run(_carry_out(Job(**given))))))


if __name__ == "__main__":
    main()
