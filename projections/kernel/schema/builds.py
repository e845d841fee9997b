"""The builds of the product that run on one database, and the oldest build that may run.

Every process has a row with the number of its build, and renews it. As long as a process of an older build is alive, nothing that
it needs is removed. When none is alive, a newer build removes it and raises `min_build` in the same transaction, so that older
builds refuse to start. A process that was considered dead but continues does not find what it needs: it writes nothing, and ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from socket import gethostname
from typing import Final, NamedTuple, Protocol
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import Unavailable
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database

_log = logging.getLogger(__name__)

BUILD: Final = 1
"""The number of this build. It is raised when a table, a view or an event changes after a release."""

LEASE: Final = 20.0
"""The number of seconds after which a process that has not renewed its row counts as dead."""
_BEAT: Final = 4.0

_TABLES = """
CREATE TABLE IF NOT EXISTS builds (
    process    uuid        PRIMARY KEY,
    build      integer     NOT NULL,
    host       text        NOT NULL,
    pid        integer     NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL
);
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'builds'::regclass AND attname = 'master_keys') THEN
        -- Fingerprints, the encrypting key first. Null if the build does not report them.
        ALTER TABLE builds ADD COLUMN master_keys text[];
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS min_build (
    only_row  boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    build     integer     NOT NULL,
    newest    integer     NOT NULL,
    reason    text        NOT NULL,
    raised_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""  # all later builds read these tables, so columns may only be added
_FIRST = "INSERT INTO min_build (build, newest, reason) VALUES (%s, %s, 'it made the database') ON CONFLICT DO NOTHING"
_NEWEST = "UPDATE min_build SET newest = %s WHERE newest < %s"
_LIMIT = "SELECT build, newest, reason FROM min_build"
_RAISE = "UPDATE min_build SET build = %s, reason = %s, raised_at = clock_timestamp() WHERE build < %s"
_LOCK: Final = 0x6275696C6473  # "builds"
_SEEN = """
INSERT INTO builds (process, build, host, pid, seen_at, master_keys)
SELECT %(process)s, %(build)s, %(host)s, %(pid)s, clock_timestamp(), %(master_keys)s::text[]
WHERE NOT EXISTS (SELECT FROM min_build WHERE build > %(build)s)
ON CONFLICT (process) DO UPDATE SET seen_at = excluded.seen_at, master_keys = excluded.master_keys
"""
_ENDED = "DELETE FROM builds WHERE process = %s OR seen_at < clock_timestamp() - interval '1 day'"
# Running processes need a moment to renew their rows after a restart of the database.
_LIVING = """
SELECT build, host, pid, started_at, extract(epoch FROM clock_timestamp() - seen_at)::float8, master_keys FROM builds
WHERE seen_at > clock_timestamp() - make_interval(secs => %(lease)s)
    OR pg_postmaster_start_time() > clock_timestamp() - make_interval(secs => %(lease)s)
    AND seen_at > pg_postmaster_start_time() - interval '10 minutes'
ORDER BY build, host, pid
"""


def schema_of(build: int) -> str:
    """Return the name of the schema whose views show tables in the form of this build, until the tables themselves are rebuilt."""
    return f"build_{build}"


class BuildTooOld(Unavailable):
    """Raised when this build may no longer run on this database."""

    def __init__(self, build: int, least: int, reason: str) -> None:
        super().__init__(f"this is build {build}, and the database needs build {least} or newer ({reason})")


class OlderBuildsRun(Unavailable):
    """Raised when an operation has to wait until no older build is running."""

    def __init__(self, build: int, older: Sequence[int], what: str) -> None:
        shown = " and ".join(map(str, older))
        super().__init__(f"{what} has to wait while build {shown} runs on this database next to build {build}")


async def admit(connection: AsyncConnection[TupleRow], build: int) -> None:
    """Register this build at the start, as the owner, under a lock of the caller. Raise `BuildTooOld`."""
    await connection.execute(_TABLES.encode())
    await connection.execute(_FIRST, (build, build))
    await check_build(connection, build)
    await connection.execute(_NEWEST, (build, build))


async def check_build(connection: AsyncConnection[TupleRow], build: int) -> None:
    """Raise `BuildTooOld` if the database needs a newer build."""
    least, _, reason = await (await connection.execute(_LIMIT)).fetchone() or (build, build, "")
    if least > build:
        raise BuildTooOld(build, least, reason)


async def is_newest(connection: AsyncConnection[TupleRow], build: int) -> bool:
    """Return True if no newer build has ever started. Only the newest build knows all tables."""
    _, newest, _ = await (await connection.execute(_LIMIT)).fetchone() or (build, build, "")
    return bool(newest <= build)


async def older_builds(connection: AsyncConnection[TupleRow], build: int) -> list[int]:
    """Return the numbers of the older builds that are running."""
    rows = await (await connection.execute(_LIVING, {"lease": LEASE})).fetchall()
    return sorted({row[0] for row in rows if row[0] < build})


async def hold_builds(connection: AsyncConnection[TupleRow]) -> None:
    """Lock the limits on builds for the caller's transaction, so that no other process changes what a build may rely on."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


async def shut_out_older(connection: AsyncConnection[TupleRow], build: int, *, because: str) -> None:
    """Prevent older builds from starting, in the caller's transaction, before something that they need is removed.

    Raise `OlderBuildsRun` while one is running, and `BuildTooOld`.
    """
    await hold_builds(connection)
    await check_build(connection, build)
    if older := await older_builds(connection, build):
        raise OlderBuildsRun(build, older, because)
    await connection.execute(_RAISE, (build, because, build))


class ReportedKeys(Protocol):
    """The master keys of a process; see `projections.vault.master_keys`."""

    @property
    def fingerprints(self) -> Sequence[str]:
        """The fingerprints of the keys; the first key encrypts."""

    async def follow(self) -> None:
        """Switch to the keys that the database uses by now."""


class RunningBuild(BackgroundTask):
    """The row of this process, from its start to its stop. A process without `keys` neither encrypts nor decrypts."""

    WHAT = "the register of builds"

    def __init__(
        self,
        database: Database,
        *,
        keys: ReportedKeys | None = None,
        build: int = BUILD,
        beat: float = _BEAT,
        end: Callable[[], None] | None = None,
    ) -> None:
        self._database = database
        self._keys = keys
        self._build = build
        self._beat = beat
        self._end = end or partial(signal.raise_signal, signal.SIGTERM)
        self._row = {"process": uuid4(), "build": build, "host": gethostname(), "pid": os.getpid()}

    async def start(self) -> None:
        """Insert the row and begin to renew it. Raise `BuildTooOld`.

        The row exists before the keys are read: a process that changes the keys either waits for this process, or has recorded the
        change before.
        """
        if not await self._seen():
            raise await self._too_old()
        await self._follow()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        with suppress(Unavailable):
            await self._database.execute(_ENDED, (self._row["process"],))

    async def _turn(self) -> None:
        await asyncio.sleep(self._beat)
        if not await self._seen():
            _log.error("%s; this process exits", await self._too_old())
            self._end()
        await self._follow()

    async def _seen(self) -> bool:
        fingerprints = [] if self._keys is None else list(self._keys.fingerprints)
        return await self._database.execute(_SEEN, {**self._row, "master_keys": fingerprints}) > 0

    async def _follow(self) -> None:
        """Follow a change of the keys, and report it at once."""
        if self._keys is not None:
            before = self._keys.fingerprints
            await self._keys.follow()
            if self._keys.fingerprints != before:
                await self._seen()

    async def _too_old(self) -> BuildTooOld:
        least, _, reason = await self._database.row(_LIMIT) or (self._build, 0, "")
        return BuildTooOld(self._build, least, reason)


class LivingProcess(NamedTuple):
    """A process that renewed its row `seen_ago` seconds ago.

    `master_keys` holds the fingerprints of its keys, the encrypting key first: empty for a process without keys, None for a build
    that does not report them.
    """

    build: int
    host: str
    pid: int
    started_at: datetime
    seen_ago: float
    master_keys: Sequence[str] | None


async def living(database: Database) -> list[LivingProcess]:
    return [LivingProcess(*row) for row in await database.rows(_LIVING, {"lease": LEASE})]


async def limits(database: Database) -> tuple[int, str]:
    """Return the oldest build that may start, and the reason."""
    least, _, reason = await database.row(_LIMIT) or (0, 0, "")
    return least, reason
