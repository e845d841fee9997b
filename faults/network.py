"""A machine that vanishes, as the kernel sees it: a client in a separate network namespace, whose link to PostgreSQL goes down.

A proxy cannot show this, because the kernel that it runs on answers every probe. Here no packet arrives any more, and nothing is
closed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from domain.kernel.errors import Unavailable
from faults.findings import markdown
from projections.kernel.database.database import Database
from tests.support.waiting import ROOT
from workers.adapters.embedded_postgres import EmbeddedPostgres

NAME: Final = "network"
MEANING: Final = "the link of a machine goes down, in network namespaces; needs root"
_HERE: Final = "10.213.77.1"
_THERE: Final = "10.213.77.2"
_LOCK: Final = 213_077
_PATIENCE: Final = 60.0
_SLACK: Final = 3.0
"""The tolerance in seconds: the kernel's timers are coarse, and the machine may be busy."""
_LIMITS: Final[Mapping[str, float]] = {
    "a query of the API or a worker": 8,
    "a command of maintenance": 10,
    "a listener for notifications": 11,
    "PostgreSQL for an idle client": 10,
    "PostgreSQL for a client within a transaction": 10,
}


class Noticed(NamedTuple):
    """The seconds after which a loss was noticed, and the limit."""

    what: str
    seconds: float
    within: float

    @property
    def holds(self) -> bool:
        return self.seconds <= self.within + _SLACK


def obstacle() -> str | None:
    """Return the reason why the scenario cannot run here; None if it can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "it needs root and the program ip (Debian: iproute2)"
    completed = subprocess.run(["ip", "netns", "add", (name := _name())], capture_output=True, text=True, check=False)
    if completed.returncode:
        return f"the kernel allows no network namespaces: {completed.stderr.strip()}"
    _ip("netns", "delete", name)
    return None


def table(results: Sequence[Noticed]) -> str:
    lines = [
        (result.what, f"{result.seconds:.1f} s", f"{result.within:.0f} s", "yes" if result.holds else "NO") for result in results
    ]
    return markdown(("who waits for whom", "noticed after", "stated", "holds"), lines)


async def measure_losses(folder: Path) -> list[Noticed]:
    """Measure what either side notices, and when."""
    postgres = EmbeddedPostgres(folder)
    local = await asyncio.to_thread(postgres.start)
    try:
        with _namespace() as (name, link):
            local = await asyncio.to_thread(_listening, postgres, local)
            return await _tried(local, name, link)
    finally:
        await asyncio.to_thread(postgres.stop)


async def _tried(local: str, namespace: str, link: str) -> list[Noticed]:
    client = await asyncio.create_subprocess_exec(
        *("ip", "netns", "exec", namespace, sys.executable, "-m", "faults.network", make_conninfo(local, host=_HERE)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert client.stdout is not None
    try:
        async with asyncio.timeout(_PATIENCE):
            assert await client.stdout.readline() == b"ready\n"
            _ip("link", "set", link, "down")
            since = time.monotonic()
            async with Database.of_owner(local, size=1) as observer:
                seen = asyncio.create_task(_sessions_gone(observer))
                reports = [(await client.stdout.readline()).decode().strip().partition(" ") for _ in range(3)]
                times = {what: float(at) for at, _, what in reports} | await seen
    finally:
        client.kill()
        await client.wait()
    return [Noticed(what, times[what] - since, within) for what, within in _LIMITS.items()]


async def _sessions_gone(observer: Database) -> dict[str, float]:
    """Return the times when the server ended the sessions of the machine that vanished."""
    gone: dict[str, float] = {}
    purposes = {"idle": "PostgreSQL for an idle client", "locking": "PostgreSQL for a client within a transaction"}
    question = "SELECT FROM pg_stat_activity WHERE application_name = %s"
    while len(gone) < len(purposes):
        for purpose, what in purposes.items():
            if what not in gone and not await observer.rows(question, (f"medialedger {purpose}",)):
                gone[what] = time.monotonic()
        await asyncio.sleep(0.05)
    assert await observer.row("SELECT pg_try_advisory_lock(%s)", (_LOCK,)) == (True,), "its locks are free"
    return gone


def _listening(postgres: EmbeddedPostgres, local: str) -> str:
    with psycopg.connect(local, autocommit=True) as owner:
        owner.execute(f"ALTER SYSTEM SET listen_addresses = '{_HERE}'".encode())
    with (postgres.data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {_THERE}/32 scram-sha-256\n")
    postgres.stop()
    return postgres.start()


@contextmanager
def _namespace() -> Iterator[tuple[str, str]]:
    """Yield a namespace and the end of its cable on this side."""
    name = _name()
    near, far = f"{name}n", f"{name}f"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        _ip("address", "add", f"{_HERE}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", name, "address", "add", f"{_THERE}/30", "dev", far)
        _ip("-n", name, "link", "set", far, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield name, near
    finally:
        _ip("netns", "delete", name)


def _name() -> str:
    return f"ml{secrets.token_hex(4)}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


async def _vanishing(url: str) -> None:
    """Run the machine that vanishes, and print the end of each wait."""
    database, owner = Database(url, size=2), Database.of_owner(url, size=1)
    await database.open()
    idle, locking = await owner.connect("idle", seconds=None), await database.connect("locking", settings=_SESSION)
    maintaining, listening = await owner.connect("maintenance", seconds=None), await database.connect("listener", seconds=3.0)
    await listening.listen("medialedger_log")
    async with locking.transaction(), asyncio.TaskGroup() as waits:
        await locking.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        waits.create_task(_until_noticed("a listener for notifications", anext(listening.receive())))
        waits.create_task(_until_noticed("a command of maintenance", maintaining.execute("SELECT pg_sleep(600)")))
        waits.create_task(_until_noticed("a query of the API or a worker", database.row("SELECT pg_sleep(600)")))
        await asyncio.sleep(0.1)  # all of them wait
        print("ready", flush=True)  # noqa: T201 - the other side reads it
    await idle.close()


_SESSION: Final = (("idle_in_transaction_session_timeout", "10s"),)


async def _until_noticed(what: str, wait: Any) -> None:
    try:
        await wait
    except (psycopg.OperationalError, Unavailable):
        print(time.monotonic(), what, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(_vanishing(sys.argv[1]))
