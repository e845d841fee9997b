"""Programs that steps run, such as ffprobe: in the step's process group, without the product's environment variables."""

from __future__ import annotations

import asyncio
import math
import os
import resource
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Find = Callable[[str], Path | None]
"""Gives the path of a program by its name."""

MOST_OUTPUT: Final = 4_194_304
MOST_ERRORS: Final = 65_536
_PIECE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Ended:
    """`output` is the beginning of standard output, at most `MOST_OUTPUT` bytes; `errors` the end of standard error, at most
    `MOST_ERRORS`."""

    status: int
    output: bytes
    errors: bytes


async def run(command: Sequence[str], *, folder: Path, seconds: float) -> Ended:
    """Raises `TimeoutError`. The program has ended in every case when this returns or raises."""
    environment = {"PATH": os.pathsep.join(os.get_exec_path()), "LC_ALL": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    _limit_processor(process.pid, seconds)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(seconds):
            output, errors, status = await asyncio.gather(_head(process.stdout), _tail(process.stderr), process.wait())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return Ended(status, output, errors)


def _limit_processor(pid: int, seconds: float) -> None:
    """More than it can use in its time: a program that it leaves behind ends by this."""
    most = math.ceil(seconds) * (os.cpu_count() or 1) + 1
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (most, most))


async def _head(stream: StreamReader) -> bytes:
    """Reads everything, else the program would block when its pipe is full."""
    kept = bytearray()
    while piece := await stream.read(_PIECE):
        kept += piece[: MOST_OUTPUT - len(kept)]
    return bytes(kept)


async def _tail(stream: StreamReader) -> bytes:
    kept = b""
    while piece := await stream.read(_PIECE):
        kept = (kept + piece)[-MOST_ERRORS:]
    return kept
