"""The process of an encode: confined, without network and files, and killed when its worker dies (ADR 0054)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from projections.kernel.background_task import start_task
from workers.adapters.encoders.sanitizer import without_addresses
from workers.kernel.confined_program import arguments
from workers.kernel.confinement import Confinement, environment

_PIECE: Final = 256 * 1024
_LINES: Final = 40
_LINE: Final = 300
_LEVELS: Final = re.compile(r"\[(?:warning|error|fatal|panic)\] *", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?:\[[^\]]*@ 0x[0-9a-f]+\] *)+")

OnPiece = Callable[[bytes], None]


class Pipes:
    """The pipes of a process that is to be started: the descriptors that it inherits, and a reader for each of its outputs."""

    def __init__(self) -> None:
        self._ours: list[tuple[int, OnPiece]] = []
        self.theirs: list[int] = []

    def open(self, on_piece: OnPiece) -> str:
        """Open a pipe and return its name in ffmpeg's notation."""
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._ours.append((ours, on_piece))
        self.theirs.append(theirs)
        return f"pipe:{theirs}"

    def hand(self, descriptor: int) -> None:
        """Pass a further descriptor to the process."""
        self.theirs.append(descriptor)

    def started(self) -> None:
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = []

    def close(self) -> None:
        self.started()
        for ours, _ in self._ours:
            os.close(ours)
        self._ours = []

    async def read(self) -> None:
        """Read all pipes to their ends, at the speed of the process: no reader here waits for a point."""
        ours, self._ours = self._ours, []
        await asyncio.gather(*(_read(descriptor, on_piece) for descriptor, on_piece in ours))


async def _read(descriptor: int, on_piece: OnPiece) -> None:
    """Read to the end. This does not use a transport: uvloop's transport closes the descriptor a second time, when another pipe may
    have its number."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        try:
            if piece := os.read(descriptor, _PIECE):
                on_piece(piece)
            elif not over.done():
                over.set_result(None)
        except BlockingIOError:
            return
        except Exception as fault:
            loop.remove_reader(descriptor)
            if not over.done():
                over.set_exception(fault)

    loop.add_reader(descriptor, readable)
    try:
        await over
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


class EncodeProcess:
    """A running program, the leader of a separate process group."""

    def __init__(self, process: Process, pipes: Pipes) -> None:
        self._process = process
        self.input = process.stdin
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._reading = start_task(pipes.read(), what="pipes of an encoder")
        self._errors = start_task(self._read_errors(), what="messages of an encoder")

    @classmethod
    async def start(
        cls, command: Sequence[str | Path], *, pipes: Pipes, confinement: Confinement, feeds: bool = False
    ) -> EncodeProcess:
        """Start a program. `feeds` is True if it reads standard input. Raises `OSError`."""
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments(confinement, [str(each) for each in command], parent=os.getpid()),
                stdin=PIPE if feeds else DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
                env=environment(),
                pass_fds=pipes.theirs,
                start_new_session=True,
            )
        except BaseException:
            pipes.close()
            raise
        pipes.started()
        return cls(process, pipes)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_line(self) -> str:
        return self._lines[-1] if self._lines else ""

    async def wait(self) -> int:
        """Wait until the process has ended and all its output was read. Return its exit status."""
        status = await self._process.wait()
        await asyncio.gather(self._reading, self._errors)
        return status

    async def terminate(self, *, seconds: float) -> None:
        """Let the process write its remaining output for this many seconds, then kill its whole group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(self.wait())
        await self.kill()

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL) if self._process.returncode is None else None
        await self._process.wait()
        for task in (self._reading, self._errors):
            task.cancel()
        await asyncio.gather(self._reading, self._errors, return_exceptions=True)

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        rest = b""
        while piece := await stream.read(4_096):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[:_LINE]
            self._lines.extend(shown for line in lines if (shown := _shown(line)))


def _shown(line: bytes) -> str:
    """Return a line without memory addresses, paths and URLs."""
    text = line[:_LINE].decode(errors="replace")
    return without_addresses(_LEVELS.sub("", _ADDRESS.sub("", text))).strip()
