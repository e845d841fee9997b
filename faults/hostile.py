"""All hostile acts at once next to healthy work: ill receivers, slow connections, searches, large jobs and a full disk.

The healthy side is first measured alone, in the same run. Its latencies are those of responses of the API, and from the request of
a write to its notification at a receiver. The hostile side runs in a separate process, but on the same processors.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import web

from faults.floods import MEMORY, PROCESSES, Watch
from faults.hostile_side import SLOW
from faults.surroundings import SmallDisk
from faults.verdict import percentile
from tests.support.product import products

NAME: Final = "hostile"
MEANING: Final = "ill receivers, slow connections, searches, large jobs and a full disk at once, next to healthy work"
FACTOR: Final = 5.0
"""The limit of the ratio between the p99 next to the hostile side and the p99 alone."""
BACK: Final = 10.0
"""The number of seconds after the end of the hostile side within which all healthy work must arrive."""
_KEY: Final = "an-admin-key-beside-the-hostile"
_STEPS: Final = "workers.job.host"
_PATIENCE: Final = 120.0


class Effort(NamedTuple):
    per_second: float
    """The healthy writes per second; there are as many reads, and a fifth as many jobs."""
    alone: float
    attacked: float


FULL: Final = Effort(per_second=10, alone=30, attacked=120)
QUICK: Final = Effort(per_second=10, alone=8, attacked=20)


@dataclass
class Measured:
    """Latencies in seconds."""

    responses: list[float] = field(default_factory=list)
    deliveries: list[float] = field(default_factory=list)


@dataclass
class Result:
    disk: str
    """The outcome of the full disk."""
    alone: Measured = field(default_factory=Measured)
    attacked: Measured = field(default_factory=Measured)
    lost: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    memory: float = 0.0
    slowest: float = 0.0
    back: float = 0.0
    used: float = 0.0
    waited: float = 0.0
    """The seconds for which the product had a processor, or waited for one, next to the hostile side. If it waits for long, other
    work of the machine is measured too."""

    @property
    def violations(self) -> list[str]:
        broken = [*self.lost[:3], *self.faults[:3]]
        broken += [f"{what}: {times:.1f} times as long" for what, times in self.times.items() if times > FACTOR]
        if self.memory > MEMORY:
            broken.append(f"{self.memory:.0f} MiB")
        if self.back > BACK:
            broken.append(f"back after {self.back:.1f} s")
        return broken

    @property
    def times(self) -> dict[str, float]:
        """The ratios of the p99 under attack to the p99 alone."""
        pairs = {
            "responses": (self.alone.responses, self.attacked.responses),
            "deliveries": (self.alone.deliveries, self.attacked.deliveries),
        }
        return {
            name: percentile(sorted(attacked), 0.99) / percentile(sorted(alone), 0.99) for name, (alone, attacked) in pairs.items()
        }

    @property
    def holds(self) -> bool:
        return not self.violations


class Healthy:
    """Writes, reads and jobs at an even pace, and a healthy receiver. Latencies are added to `measured`."""

    def __init__(self, http: aiohttp.ClientSession, result: Result) -> None:
        self._http = http
        self._result = result
        self.measured = result.alone
        self.sent: dict[str, tuple[float, Measured]] = {}
        """When the write of an Event was sent, until its notification has come."""
        self._arrived: dict[str, float] = {}
        """When the notification of an Event came, until its write is answered."""
        self.jobs: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._receiver = ""

    @asynccontextmanager
    async def receiver(self) -> AsyncIterator[None]:
        """Run the receiver, which is also the host of the jobs' files."""
        application = web.Application()
        application.router.add_post("/hook", self._notified)
        application.router.add_get("/file", self._file)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._receiver = f"http://127.0.0.1:{runner.addresses[0][1]}"
            await self.ask("POST", "/api/webhook/", {"webhookUrl": f"{self._receiver}/hook", "useJsonBody": True})
            yield
        finally:
            await runner.cleanup()

    async def work(self, seconds: float, per_second: float) -> None:
        """Begin each request when its time comes, even if earlier ones have not been answered."""
        begun = time.monotonic()
        for number in range(int(seconds * per_second)):
            await asyncio.sleep(max(0.0, begun + number / per_second - time.monotonic()))
            for act in (self._write, self._read, *([self._job] if number % 5 == 0 else [])):
                task = asyncio.create_task(act())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def answered(self) -> None:
        await asyncio.gather(*self._tasks)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        try:
            async with self._http.request(method, path, json=body) as answer:
                if answer.status < 300:
                    return await answer.json()
                self._result.faults.append(f"{method} {path}: {answer.status} {(await answer.text())[:100]}")
        except (aiohttp.ClientError, TimeoutError) as fault:
            self._result.faults.append(f"{method} {path}: {type(fault).__name__}")
        return None

    async def _timed(self, method: str, path: str, body: object = None) -> Any:
        begun, measured = time.monotonic(), self.measured
        answer = await self.ask(method, path, body)
        measured.responses.append(time.monotonic() - begun)
        return answer

    async def _write(self) -> None:
        begun, measured = time.monotonic(), self.measured
        answer = await self._timed("POST", "/api/event/", {"title": "healthy"})
        if answer is not None:
            self.sent[answer["id"]] = begun, measured
            if answer["id"] in self._arrived:
                self._has_arrived(answer["id"], self._arrived.pop(answer["id"]))

    async def _read(self) -> None:
        await self._timed("GET", "/api/room/")

    async def _job(self) -> None:
        self._number += 1
        parameters = {"content_id": f"healthy-{self._number}", "url": f"{self._receiver}/file", "file_name": "a"}
        answer = await self._timed("POST", "/engine/job", {"job": {"workflow": "http_fetch_verify"}, "parameters": parameters})
        if answer is not None:
            self.jobs.add(answer["id"])

    async def _notified(self, request: web.Request) -> web.Response:
        event = (await request.json())["eventId"]
        if event in self.sent:
            self._has_arrived(event, time.monotonic())
        else:
            self._arrived[event] = time.monotonic()
        return web.Response()

    def _has_arrived(self, event: str, at: float) -> None:
        begun, measured = self.sent.pop(event)
        measured.deliveries.append(at - begun)

    async def _file(self, _: web.Request) -> web.Response:
        return web.Response(body=b"x" * 100_000)

    async def jobs_ended(self) -> bool:
        """Return True if all jobs have ended. Failed jobs count as lost."""
        while self.jobs:
            job = min(self.jobs)
            answer = await self.ask("GET", f"/engine/jobs/{job}")
            if answer is None or answer["queue_state"] != "completed":
                return False
            self.jobs.discard(job)
            if answer["failed"]:
                self._result.lost.append(f"job {job} failed")
        return True


async def run_scenarios(folder: Path, *, effort: Effort) -> Result:
    disk = SmallDisk(folder / "media") if os.geteuid() == 0 else None
    result = Result("filled" if disk is not None else "NOT TRIED: only root mounts a small disk")
    if disk is not None:
        disk.mount()
    try:
        with products() as made:
            settings = {"outbound_allow": "127.0.0.0/8", "media_root": str(folder / "media"), "download_free_gib": "0"}
            product = made.start_anew(folder / "home", admin_api_key=_KEY, processes=PROCESSES, **settings)
            await asyncio.to_thread(product.until_ready)
            watch = Watch(product.process.pid, product.address, apart=_STEPS)
            try:
                await _play_scenario(product.address, result, disk=disk, effort=effort, watch=watch)
            finally:
                await asyncio.to_thread(watch.close)
            result.memory, result.slowest = watch.memory, watch.slowest
            result.faults += sorted(watch.faults)
    finally:
        if disk is not None:
            disk.unmount()
    return result


async def _play_scenario(address: str, result: Result, *, disk: SmallDisk | None, effort: Effort, watch: Watch) -> None:
    timeout = aiohttp.ClientTimeout(60)
    async with aiohttp.ClientSession(address, headers={"API-KEY": _KEY, "client": "admin"}, timeout=timeout) as http:
        healthy = Healthy(http, result)
        async with healthy.receiver():
            for name, value in (("retry_limit", 100), ("retry_delay", 1), ("max_jobs", 20)):
                await healthy.ask("POST", "/engine/settings", {"name": name, "setting": value})
            stranger = await healthy.ask("POST", "/api/client/", {"name": "stranger", "roles": ["operator"]})
            await healthy.work(effort.alone, effort.per_second)
            await healthy.answered()
            watch.begin()
            side = await _begun(address, stranger["key"])
            healthy.measured = result.attacked
            if disk is not None:
                filling = asyncio.create_task(_filled(disk, effort.attacked))
            await healthy.work(effort.attacked, effort.per_second)
            if disk is not None:
                await filling
            ended, _ = await side.communicate(b"")
            over = time.monotonic()
            result.used, result.waited = watch.since()
            result.done = json.loads(ended)
            await healthy.answered()
            await _back(healthy, result)
            result.back = time.monotonic() - over
    for what, least in (("slow connections", SLOW), ("kinds of ill receivers that were asked", 50)):
        if result.done.get(what, 0) < least:
            result.faults.append(f"only {result.done.get(what, 0)} {what}")


async def _begun(address: str, key: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    side = await asyncio.create_subprocess_exec(sys.executable, "-m", "faults.hostile_side", address, stdin=pipe, stdout=pipe)
    assert side.stdin is not None
    side.stdin.write(key.encode() + b"\n")
    await side.stdin.drain()
    assert side.stdout is not None
    if await side.stdout.readline() != b"begun\n":
        raise RuntimeError("the hostile side has ended")
    return side


async def _filled(disk: SmallDisk, seconds: float) -> None:
    """Fill the disk in the middle of the time."""
    await asyncio.sleep(seconds / 3)
    await asyncio.to_thread(disk.fill)
    await asyncio.sleep(seconds / 3)
    await asyncio.to_thread(disk.free)


async def _back(healthy: Healthy, result: Result) -> None:
    """Wait until all notifications have arrived and all jobs have ended, for a limited time."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not (await healthy.jobs_ended() and not healthy.sent):  # noqa: ASYNC110 - a limit of the scenario
        await asyncio.sleep(0.2)
    result.lost += [f"Event {event} was not notified" for event in healthy.sent]
    result.lost += [f"job {job} has not ended" for job in healthy.jobs]


def table(result: Result) -> str:
    def line(name: str, alone: Sequence[float], attacked: Sequence[float]) -> Sequence[str]:
        figures = [f"{percentile(sorted(cells), share) * 1000:.0f}" for cells in (alone, attacked) for share in (0.5, 0.99)]
        return (name, str(len(attacked)), *figures, f"{result.times[name]:.1f}")

    lines: list[Sequence[str]] = [
        ("healthy", "number", "p50 alone, ms", "p99", "p50 beside, ms", "p99", "times at p99"),
        ("---",) * 7,
    ]
    lines += [
        line("responses", result.alone.responses, result.attacked.responses),
        line("deliveries", result.alone.deliveries, result.attacked.deliveries),
    ]
    done = ", ".join(f"{what} {number}" for what, number in result.done.items())
    return "\n".join(
        (
            *("| " + " | ".join(cells) + " |" for cells in lines),
            f"lost {len(result.lost)}; {result.memory:.0f} MiB of {MEMORY}; slowest /livez {result.slowest * 1000:.0f} ms;"
            f" back after {result.back:.1f} s; disk {result.disk};"
            f" {result.used:.1f} s on a processor, {result.waited:.1f} s waiting for one",
            done,
            *(f"VIOLATED: {cells}" for cells in result.violations),
        )
    )
