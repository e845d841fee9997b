"""Programs that steps run, such as ffprobe: in the step's process group, without the product's environment variables."""

from __future__ import annotations

import asyncio
import math
import os
import resource
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

Find = Callable[[str], Path | None]
"""Returns the path of a program by its name."""

MOST_OUTPUT: Final = 4_194_304
MOST_ERRORS: Final = 65_536
_PIECE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program.

    `output` is the beginning of standard output, at most `MOST_OUTPUT` bytes; `errors` is the end of standard error, at most
    `MOST_ERRORS` bytes.
    """

    status: int
    output: bytes
    errors: bytes


OnLine = Callable[[str], bool]
"""Receives each line of standard output while the program runs, and returns True if the line shows that the program made progress.
"""


class Stalled(TimeoutError):
    """Raised when the program made no progress for too long."""


class _Stall:
    """A time limit that starts again whenever the program makes progress."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(seconds)

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(self, *fault: Any) -> None:
        try:
            await self._limit.__aexit__(*fault)
        except TimeoutError:
            raise Stalled from None

    def moved(self) -> None:
        if self._seconds is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    seconds: float,
    stall: float | None = None,
    on_line: OnLine | None = None,
    given: bytes = b"",
) -> Ended:
    """Run a program and return its end.

    Raises `TimeoutError` after `seconds`, and `Stalled` if no line of output showed progress for `stall` seconds. The program has
    ended in every case when this returns or raises.
    """
    environment = {"PATH": os.pathsep.join(os.get_exec_path()), "LC_ALL": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
    stdin = PIPE if given else DEVNULL
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdin=stdin, stdout=PIPE, stderr=PIPE)
    _limit_processor(process.pid, seconds)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(seconds), _Stall(stall) as limit:
            lines = None if on_line is None else _Lines(on_line, limit.moved)
            output, errors, status, _ = await asyncio.gather(
                _head(process.stdout, lines), _tail(process.stderr), process.wait(), _give(process.stdin, given)
            )
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return Ended(status, output, errors)


def _limit_processor(pid: int, seconds: float) -> None:
    """Limit the processor time to more than the program can use in its time: a program that it leaves running is ended by this
    limit."""
    most = math.ceil(seconds) * (os.cpu_count() or 1) + 1
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (most, most))


async def _give(stream: StreamWriter | None, given: bytes) -> None:
    if stream is not None:
        with suppress(ConnectionError):  # the program ended, or did not read to the end
            stream.write(given)
            await stream.drain()
            stream.close()


class _Lines:
    """Splits output into lines, for `on_line`. The end of a line that is too long is left out."""

    def __init__(self, on_line: OnLine, moved: Callable[[], None]) -> None:
        self._on_line = on_line
        self._moved = moved
        self._rest = b""

    def take(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_PIECE]
        for line in lines:
            if self._on_line(line.decode(errors="replace")):
                self._moved()


async def _head(stream: StreamReader, lines: _Lines | None) -> bytes:
    """Read the stream to its end, and return its beginning. If it were not read, the program would block when its pipe is full."""
    head = bytearray()
    while piece := await stream.read(_PIECE):
        head += piece[: MOST_OUTPUT - len(head)]
        if lines is not None:
            lines.take(piece)
    return bytes(head)


async def _tail(stream: StreamReader) -> bytes:
    tail = b""
    while piece := await stream.read(_PIECE):
        tail = (tail + piece)[-MOST_ERRORS:]
    return tail
