"""Writer processes for the gap and freeze tests: `python -m tests.projections.log.writers URL DIRECTORY COUNT WAY`.

Every process has several commands under way at all times, of 1 to 5 events each, and one in ten is stale on purpose. They write
until their standard input ends. Each leaves what it was told in DIRECTORY/<slot>.json; how far each has come stands in
DIRECTORY/progress, which anybody may map.

WAY `appender` is the product's own. `transaction` takes the head row in a transaction of several round trips: the wrong way, for a
test that shows that the freeze test would notice.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from psycopg import AsyncConnection

from domain.kernel.errors import ConcurrencyConflict
from projections.kernel.database.database import Database
from projections.log.append import Appender, send_events
from projections.log.commit_notifier import CommitNotifier
from projections.log.statement import WriteSet, statement
from tests.projections.log.helpers import event
from tests.support.waiting import ROOT

LANES = 4
_SLOT = struct.Struct("=qq")  # pid, appends acknowledged

Write = Callable[[WriteSet], Awaitable[int]]


@dataclass(frozen=True)
class Acknowledged:
    """An append as seen by its writer: the times of request and answer, the number of events, and the position of the last one."""

    asked: float
    answered: float
    events: int
    position: int


class Writers:
    """The test's side: the processes, how far they are, and what they were told."""

    def __init__(self, directory: Path, count: int, process: subprocess.Popen[bytes]) -> None:
        self.count = count
        self.process = process
        self._directory = directory
        self._progress = _mapped(directory)

    def pid(self, slot: int) -> int:
        pid, _ = _SLOT.unpack_from(self._progress, slot * _SLOT.size)
        return int(pid)

    def done(self, slot: int) -> int:
        _, count = _SLOT.unpack_from(self._progress, slot * _SLOT.size)
        return int(count)

    @property
    def total(self) -> int:
        return sum(self.done(slot) for slot in range(self.count))

    @property
    def all_wrote(self) -> bool:
        return all(self.done(slot) for slot in range(self.count))

    def wind_up(self) -> list[list[Acknowledged]]:
        """Let them finish what is under way; what each was told."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        reports = [json.loads((self._directory / f"{slot}.json").read_text()) for slot in range(self.count)]
        return [[Acknowledged(*append) for append in each] for each in reports]


@contextmanager
def writers(url: str, directory: Path, *, count: int, way: str = "appender") -> Iterator[Writers]:
    """Running writers; none is left when this ends, however it ends, also if one is frozen."""
    (directory / "progress").write_bytes(bytes(_SLOT.size * count))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.projections.log.writers", url, str(directory), str(count), way],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield Writers(directory, count, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _mapped(directory: Path) -> mmap.mmap:
    with (directory / "progress").open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


class _Slot:
    """The side of one writer process."""

    def __init__(self, directory: Path, slot: int) -> None:
        self.appends: list[tuple[float, float, int, int]] = []
        self.over = False
        self._slot = slot
        self._file = directory / f"{slot}.json"
        self._progress = _mapped(directory)

    @classmethod
    async def run(cls, url: str, directory: Path, *, slot: int, way: str) -> Self:
        self = cls(directory, slot)
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._end)
        write, close = await (_appender(url) if way == "appender" else _transaction(url))
        await asyncio.gather(*(self._lane(write, lane) for lane in range(LANES if way == "appender" else 1)))
        await close()
        self._file.write_text(json.dumps(self.appends))
        return self

    def _end(self) -> None:
        self.over = True
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    async def _lane(self, write: Write, lane: int) -> None:
        dice = random.Random(self._slot * 100 + lane)
        stream, version = f"writer:{self._slot}.{lane}", 0
        while not self.over:
            size = dice.randint(1, 5)
            stale = version > 0 and dice.random() < 0.1
            first = 1 if stale else version + 1
            asked = time.monotonic()
            try:
                position = await write(WriteSet([event(stream, first + index) for index in range(size)]))
            except ConcurrencyConflict:
                assert stale
                continue
            assert not stale
            version += size
            self.appends.append((asked, time.monotonic(), size, position))
            _SLOT.pack_into(self._progress, self._slot * _SLOT.size, os.getpid(), len(self.appends))


async def _appender(url: str) -> tuple[Write, Callable[[], Awaitable[None]]]:
    database = Database(url)
    commit_notifier = CommitNotifier(database)
    appender = Appender(database, announce=commit_notifier.announce)
    await appender.start()
    await commit_notifier.start()

    async def close() -> None:
        await appender.stop()
        await commit_notifier.stop()

    return appender.append, close


async def _transaction(url: str) -> tuple[Write, Callable[[], Awaitable[None]]]:
    connection = await Database(url).connect("transaction")
    await send_events(connection)

    async def write(append: WriteSet) -> int:
        return await _in_a_transaction(connection, append)

    return write, connection.close


async def _in_a_transaction(connection: AsyncConnection, append: WriteSet) -> int:
    if append.events[0].version == 1 and await _there(connection, append.events[0].stream):
        raise ConcurrencyConflict(append.events[0].stream)
    async with connection.transaction():
        text, parameters = statement([append])
        cursor = await (await connection.execute(text, parameters, binary=True)).fetchone()
    assert cursor is not None
    return int(cursor[0])


async def _there(connection: AsyncConnection, stream: str) -> bool:
    cursor = await connection.execute("SELECT FROM events WHERE originator_id = %s LIMIT 1", (stream,))
    return await cursor.fetchone() is not None


def main(url: str, directory: str, count: str, way: str) -> int:
    children = []
    for slot in range(int(count)):
        child = os.fork()
        if not child:
            asyncio.run(_Slot.run(url, Path(directory), slot=slot, way=way))
            os._exit(0)
        children.append(child)
    return max(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
