"""PgBouncer in front of PostgreSQL: in session mode the product runs, in the other modes it refuses with one line."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faults.findings import markdown
from tests.support.waiting import ROOT
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.embedded_postgres.account import server_account

NAME: Final = "pooler"
MEANING: Final = "a real PgBouncer in its three modes, with other clients"
_REFUSED: Final = "medialedger: the database is reached through a pooler that shares sessions"
_BUSY: Final = 4
_TRIES: Final = 4
_SETTINGS: Final = """\
[databases]
medialedger = host={host} port=5432 dbname=medialedger user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 40
logfile = {folder}/{mode}.log
pidfile = {folder}/{mode}.pid
"""


class Tried(NamedTuple):
    """The number of starts of the product, and of refusals with the line that states the reason."""

    mode: str
    busy: bool
    starts: int
    refused: int

    @property
    def holds(self) -> bool:
        return self.refused == (0 if self.mode == "session" else self.starts)


def obstacle() -> str | None:
    return None if shutil.which("pgbouncer") else "PgBouncer is not installed: apt-get install pgbouncer"


def table(results: Sequence[Tried]) -> str:
    lines = [
        (result.mode, "busy" if result.busy else "none", str(result.starts), str(result.refused), "yes" if result.holds else "NO")
        for result in results
    ]
    return markdown(("mode of PgBouncer", "other clients", "starts", "refused", "holds"), lines)


async def run_scenarios(folder: Path) -> list[Tried]:
    postgres = EmbeddedPostgres(folder / "database")
    url = await asyncio.to_thread(postgres.start)
    results: list[Tried] = []
    try:
        for mode in ("session", "transaction", "statement"):
            with _pgbouncer(folder, url, mode=mode) as through:
                for busy in (False, True):
                    others = [asyncio.create_task(_keep_busy(through)) for _ in range(_BUSY if busy else 0)]
                    refused = sum([await _refused(folder, through) for _ in range(_TRIES)])
                    for other in others:
                        other.cancel()
                    await asyncio.gather(*others, return_exceptions=True)
                    results.append(Tried(mode, busy, _TRIES, refused))
    finally:
        await asyncio.to_thread(postgres.stop)
    return results


async def _refused(folder: Path, url: str) -> bool:
    """Start a command of the product, and return True if it is refused. Raise if it ends in another way."""
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli.main", "migrate"),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MEDIALEDGER_HOME": str(folder / "home"), "MEDIALEDGER_DATABASE_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = (text.decode() for text in await done.communicate())
    if done.returncode == 0 and "the schema is up to date" in out:
        return False
    if done.returncode == 1 and _REFUSED in error:
        return True
    raise AssertionError(f"{done.returncode} {out} {error}")


async def _keep_busy(url: str) -> None:
    """Run short statements without end, like another application that uses the same pooler."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=None) as connection:
        while True:
            await connection.execute("SELECT pg_sleep(0.001)")


@contextmanager
def _pgbouncer(folder: Path, url: str, *, mode: str) -> Iterator[str]:
    parts, account = conninfo_to_dict(url), server_account()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    place = folder / mode
    place.mkdir()
    settings = place / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(**{**parts, "port": port, "mode": mode, "folder": place}))
    if account is not None:
        for path in (place, settings):
            os.chown(path, account.pw_uid, account.pw_gid)
    user = [] if account is None else [f"--user={account.pw_name}"]
    process = subprocess.Popen(["pgbouncer", "--quiet", *user, str(settings)])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                break
        yield make_conninfo(host="127.0.0.1", port=port, dbname="medialedger", user=str(parts["user"]))
    finally:
        process.terminate()
        process.wait()
