"""The quiet mode of a process that runs no workers, and the order of the command line to be quiet."""

from __future__ import annotations

from api.wiring.core import Core
from domain.kernel.ports import Invocation
from domain.record.kinds.quiet import Quiet
from domain.record.record import RegisterRecord
from projections.kernel.database.database import Database
from projections.record.queries import RecordQueries
from workers.kernel.quiet import QuietMode


async def quiet_mode(database: Database) -> QuietMode:
    """Return the quiet mode for a short command: the order is read once."""
    quiet = QuietMode()
    await quiet.read(RecordQueries(database, (Quiet,)))
    return quiet


async def order_quiet(core: Core, reason: str, *, invocation: Invocation) -> None:
    """Order that nothing leaves the installation. An existing order stays as it is, with its reason."""
    if not (await quiet_mode(core.database)).on:
        values = {"on": True, "reason": reason}
        await core.executor.execute(RegisterRecord(Quiet.ONLY_KEY, Quiet, values), invocation=invocation)
