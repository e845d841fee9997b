"""Finishes an upgrade beside a process that serves: builds its views when no older build lives."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import ClassVar

from api.wiring.core import unfinished
from projections.kernel.background_task import BackgroundTask, start_forever
from projections.kernel.database import Database
from projections.kernel.migrate import may_migrate

_log = logging.getLogger(__name__)
_LOCK = 0x66696E697368  # "finish"
_TAKE = "SELECT pg_try_advisory_lock(%s)"


class Finisher(BackgroundTask):
    """Starts `medialedger migrate --finish` as a process of its own, since to build a view takes a core for some time. Of all
    processes on the database one does it at a time; the others look now and then whether it is done."""

    WHAT: ClassVar[str] = "the rest of the upgrade"
    PAUSE: ClassVar[float] = 10.0

    def __init__(self, database: Database, *, owner: str | None = None, look_again: float = 5.0) -> None:
        """`owner`: the process that is started finds this address of the owner as this one did."""
        self._database = database
        self._owner = owner
        self._look_again = look_again
        self._finished = False

    async def start(self) -> None:
        done = lambda: self._finished  # noqa: E731
        self._task = start_forever(self._turn, what=self.WHAT, until=done, pause=self.PAUSE)

    async def _turn(self) -> None:
        left = await unfinished(self._database)
        if not left:
            self._finished = True
            return
        connection = await self._database.connect("finisher")
        try:
            if self._owner in (None, self._database.conninfo) and not await may_migrate(connection):
                _log.warning("to finish the upgrade (%s), run `medialedger migrate --finish` as the owner", ", ".join(left))
                self._finished = True
                return
            taken = await (await connection.execute(_TAKE, (_LOCK,))).fetchone()
            if taken and taken[0]:
                _log.info("waiting until no older build runs: %s", ", ".join(left))
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
