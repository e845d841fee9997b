"""Finishes an upgrade next to a serving process: builds its views when no older build is running."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import ClassVar

from api.wiring.core import unfinished
from projections.kernel.background_task import BackgroundTask, start_forever
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import may_migrate

_log = logging.getLogger(__name__)
_LOCK = 0x66696E697368  # "finish"
_TAKE = "SELECT pg_try_advisory_lock(%s)"


class Finisher(BackgroundTask):
    """Runs `medialedger migrate --finish` in a separate process, since building a view uses a core for some time. Only one process
    on the database does it at a time; the others check from time to time whether it is done."""

    WHAT: ClassVar[str] = "the rest of the upgrade"
    PAUSE: ClassVar[float] = 10.0

    def __init__(self, database: Database, *, owner: str | None = None, look_again: float = 5.0) -> None:
        """Create the task. The started process finds `owner`, the address of the owner, as this process did."""
        self._database = database
        self._owner = owner
        self._look_again = look_again
        self._finished = False

    async def start(self) -> None:
        done = lambda: self._finished  # noqa: E731
        self._task = start_forever(self._turn, what=self.WHAT, until=done, pause=self.PAUSE)

    async def _turn(self) -> None:
        pending = await unfinished(self._database)
        if not pending:
            self._finished = True
            return
        connection = await self._database.connect("finisher")
        try:
            if self._owner in (None, self._database.conninfo) and not await may_migrate(connection):
                _log.warning("to finish the upgrade (%s), run `medialedger migrate --finish` as the owner", ", ".join(pending))
                self._finished = True
                return
            taken = await (await connection.execute(_TAKE, (_LOCK,))).fetchone()
            if taken and taken[0]:
                _log.info("waiting until no older build is running: %s", ", ".join(pending))
                await _run_to_its_end("migrate", "--finish", "--parent", str(os.getpid()))
            else:
                await asyncio.sleep(self._look_again)
        finally:
            await connection.close()


async def _run_to_its_end(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "api.cli.main", *command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    try:
        if code := await process.wait():
            raise RuntimeError(f"`medialedger {' '.join(command)}` ended with {code}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
