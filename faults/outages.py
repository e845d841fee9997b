"""Outages: the database unavailable for minutes, its disk full, descriptors used up, clocks that leap.

In addition to the figures of every scenario they measure how soon callers are answered with an error, how soon everything works
again, and how much is logged.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import psycopg

from faults.scenarios import Scenario, Scene
from faults.stage import KEY, Servers
from faults.surroundings import faketime

SOON: Final = 2.0
"""The seconds from the first connection that the database accepts to the first 200."""
AT_ONCE: Final = 1.0
"""The seconds to a 503 while the database is unavailable."""
_KNOWN: Final = 3.0
"""The seconds until every process has noticed the outage: a process that waits for an answer may first have to give up its wait."""
_LINES: Final = 12
_LEAPS: Final = ("+3600", "-7200", "+86400", "+0")


@dataclass
class Watch:
    """A caller that sends requests to one process continuously. `answers` holds the time of the request, the status, and the
    seconds."""

    address: str
    answers: list[tuple[float, int, float]] = field(default_factory=list)

    async def ask(self, http: aiohttp.ClientSession) -> None:
        while True:
            asked = time.monotonic()
            try:
                async with http.get(f"{self.address}/api/room/") as answer:
                    await answer.read()
                    self.answers.append((asked, answer.status, time.monotonic() - asked))
            except aiohttp.ClientError:
                self.answers.append((asked, 0, time.monotonic() - asked))
            await asyncio.sleep(0.05)

    def slowest(self, since: float, until: float) -> float:
        """Return the seconds of the slowest answer in this time."""
        return max((seconds for asked, _, seconds in self.answers if since < asked < until - AT_ONCE), default=0.0)

    def back(self, since: float) -> float:
        """Return the seconds until a request was answered with 200."""
        good = (asked + seconds for asked, status, seconds in self.answers if status == 200 and asked > since)
        return min(good, default=float("inf")) - since


@asynccontextmanager
async def _watched(scene: Scene) -> AsyncIterator[Sequence[Watch]]:
    watches = [Watch(address) for address in scene.stage.addresses]
    async with aiohttp.ClientSession(headers={"API-KEY": KEY}, timeout=aiohttp.ClientTimeout(60)) as http:
        asking = [asyncio.create_task(watch.ask(http)) for watch in watches]
        try:
            yield watches
        finally:
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def _accepted(url: str) -> float:
    """Return the time when the database accepts a connection."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute("SELECT 1")
        except psycopg.Error:
            await asyncio.sleep(0.02)
        else:
            return time.monotonic()


async def _ends(scene: Scene, watches: Sequence[Watch], *, lost: float, seconds: float, lines: int) -> None:
    """Judge an outage that began at `lost`, when the database accepts connections again."""
    accepted = await _accepted(scene.stage.database)
    async with asyncio.timeout(120):
        while any(watch.back(accepted) == float("inf") for watch in watches):  # noqa: ASYNC110 - what is watched is another process
            await asyncio.sleep(0.05)
    back = max(watch.back(accepted) for watch in watches)
    slowest = max(watch.slowest(lost + _KNOWN, accepted) for watch in watches)
    logged = scene.stage.log_lines() - lines
    most = len(scene.stage.all) * (_LINES + int(seconds // 30) * 2)
    scene.notes.append(f"away {accepted - lost:.0f} s: 503 within {slowest:.2f} s, 200 after {back:.2f} s, {logged} log lines")
    if back > SOON:
        scene.violations.append(f"the first 200 came {back:.1f} s after the database")
    if slowest > AT_ONCE:
        scene.violations.append(f"a caller waited {slowest:.1f} s for a 503")
    if logged > most:
        scene.violations.append(f"{logged} lines were logged; {most} would do")


async def postgres_away(scene: Scene) -> None:
    for seconds in scene.effort.away:
        async with _watched(scene) as watches:
            lines, lost = scene.stage.log_lines(), time.monotonic()
            await scene.stage.stop_postgres()
            await asyncio.sleep(seconds)
            starting = asyncio.create_task(scene.stage.start_postgres())
            await _ends(scene, watches, lost=lost, seconds=seconds, lines=lines)
            await starting
        await scene.moment(2, 4)


async def disk_full(scene: Scene) -> None:
    """Fill the disk, which holds only the database. The server ends when it cannot extend its log, and is started
    again and again."""
    seconds = scene.effort.full
    async with _watched(scene) as watches:
        lines, filled = scene.stage.log_lines(), time.monotonic()
        scene.stage.fill_disk()
        while time.monotonic() - filled < seconds:
            await scene.stage.start_postgres(must=False)
            await asyncio.sleep(1)
        scene.stage.free_disk()
        starting = asyncio.create_task(scene.stage.start_postgres())
        await _ends(scene, watches, lost=filled, seconds=seconds, lines=lines)
        await starting


async def descriptors_exhausted(scene: Scene) -> None:
    """Prevent all processes from opening files or connections; then permit it again."""
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in (process.pid for process in scene.stage.all)}
    async with _watched(scene) as watches:
        lines = scene.stage.log_lines()
        try:
            for pid, (_, hard) in limits.items():
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), hard))
            await asyncio.sleep(scene.effort.exhausted)
        finally:
            for pid, limit in limits.items():
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        await _ends(scene, watches, lost=time.monotonic(), seconds=scene.effort.exhausted, lines=lines)
    await scene.moment(1, 2)
    if made_due := sum([await scene.stage.make_due(receiver) for receiver in scene.receivers]):
        scene.violations.append(f"{made_due} deliveries lost an attempt because there was no descriptor")


async def clocks_leap(scene: Scene) -> None:
    """Set the clocks of one process of every role forward and back. Those of the others and of the database are right."""
    for leap in _LEAPS:
        scene.stage.set_clocks(leap)
        await asyncio.sleep(scene.effort.calm / 2)
    scene.notes.append(f"leaps by {', '.join(_LEAPS)} s")


def _no_mount() -> str | None:
    return None if os.geteuid() == 0 else "only root mounts a small disk"


def _no_faketime() -> str | None:
    return None if faketime() is not None else "there is no libfaketime: apt-get install faketime"


OUTAGES: Sequence[Scenario] = (
    Scenario("away", "PostgreSQL is away for minutes", True, postgres_away),
    Scenario(
        "full",
        "the disk of PostgreSQL is full, then freed; no Kafka",
        False,
        disk_full,
        servers=Servers.ON_SMALL_DISK,
        obstacle=_no_mount,
    ),
    Scenario("descriptors", "every process has used up its descriptors; no Kafka", False, descriptors_exhausted),
    Scenario("clock", "clocks leap forward and back; no Kafka", False, clocks_leap, servers=Servers.CLOCKED, obstacle=_no_faketime),
)
