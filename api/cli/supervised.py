"""A process of the supervisor, as the supervisor sees it: started, ready, retired or ended."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from api.cli.process_channel import Channel, ChannelClosed
from api.cli.shared import Place, Shared
from api.operations.metrics import Snapshot, of_process
from api.wiring.startup import StartError
from projections.kernel.background_task import start_task
from workers.kernel.forked import ForkedProcess, ForkServer

_SCRAPE_SECONDS: Final = 1.0
_LAST_WORDS: Final = 1.0
"""The seconds for reading the last messages of an ended process."""


Summary = Sequence[tuple[str, str]]
"""The lines for the person who started the product."""


class Supervised:
    """A process of the supervisor. Its share of shared limits is freed when it has ended, however it ended."""

    def __init__(self, place: Place, shared: Shared, *, fork_server: ForkServer) -> None:
        self.place = place
        self._fork_server = fork_server
        self.snapshot: Snapshot = ()
        self._since = monotonic()
        self._shared = shared
        self._cell = shared.cells.pop()
        self._taken: Counter[str] = Counter()
        self.failure = ""
        """The reported reason why it could not start."""
        self._ready: asyncio.Future[Summary] = asyncio.get_running_loop().create_future()
        self._process: ForkedProcess
        self._ending: asyncio.Task[int]
        self.channel = Channel(
            answers={"token": self._token, "seat": self._seat, "metrics": self._metrics},
            notices={"ready": self._set_ready, "failed": self._set_failure, "leave": self._leave, "metrics": self._store_metrics},
        )

    @property
    def age(self) -> float:
        return monotonic() - self._since

    @property
    def pid(self) -> int:
        return self._process.pid

    async def start(self) -> None:
        """Fork the process and connect to it. Raise `StartError` if that fails."""
        ours, theirs = socket.socketpair()
        order = {
            "kind": self.place.kind,
            "title": f"medialedger: {self.place}",
            "processes": self._shared.processes,
            "cell": self._cell,
            "roles": list(self.place.roles),
            "settings": dict(self._shared.settings),
        }
        passed = [theirs.fileno(), self._shared.changes, *(each.fileno() for each in self.place.sockets)]
        try:
            self._process = await self._fork_server.fork(order, passed)
        except BaseException as error:
            ours.close()
            self._shared.cells.append(self._cell)
            if isinstance(error, OSError):
                raise StartError(f"no process could be forked: {error.strerror or error}") from None
            raise
        finally:
            theirs.close()
        self._shared.running.append(self)
        self._ending = start_task(self._end(), what="end of a process")
        await self.channel.connect(ours)

    async def ready(self) -> Summary:
        """Wait until the process is ready and return its summary. Raise `StartError` with the reported reason if it ends before."""
        either: list[asyncio.Future[Any]] = [self._ready, self._ending]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return self._ready.result()
        raise StartError(self.failure or f"the process {self.place} ended before it was ready: {exit_text(self._ending.result())}")

    async def ended(self) -> int:
        """Wait for the end and return the exit code; negative for a signal."""
        return await asyncio.shield(self._ending)

    async def _end(self) -> int:
        """Free the shares of the process, after reading its last messages."""
        code = await self._process.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.channel.ended()
        self._shared.running.remove(self)
        self._shared.ended(self.snapshot, self._taken)
        self._shared.cells.append(self._cell)
        await self.channel.close()
        return code

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    async def scrape(self) -> None:
        """Ask for the metrics of the process. If it does not answer, its earlier numbers stay."""
        with suppress(ChannelClosed, TimeoutError):
            self._store_metrics(await self.channel.ask("metrics", seconds=_SCRAPE_SECONDS))

    async def _token(self, client: str) -> int:
        return self._shared.buckets.take(client)

    async def _seat(self, request: Sequence[Any]) -> bool:
        kind, most = request
        taken = await self._shared.seats.take(kind, most)
        self._taken[kind] += taken
        return taken

    def _leave(self, kind: str) -> None:
        self._taken[kind] -= 1
        if not self._taken[kind]:
            del self._taken[kind]
        self._shared.seats.leave(kind)

    async def _metrics(self, _: None) -> Snapshot:
        return await self._shared.metrics()

    def _store_metrics(self, snapshot: Snapshot) -> None:
        self.snapshot = of_process(snapshot, str(self.place))

    def _set_ready(self, summary: Summary) -> None:
        if not self._ready.done():
            self._ready.set_result(summary)

    def _set_failure(self, reason: str) -> None:
        self.failure = reason


def exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
