"""The directory of one infrastructure key: a copy of its template, its state, and the lock of the program that runs there."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from projections.kernel.background_task import start_task
from projections.kernel.sizes import MIB

_LAUNCH: Final = Path(__file__).with_name("launch.py")
_FLOCK: Final = "hhqqi"
_POLL: Final = 0.1
_AFTER_KILL: Final = 5.0
BACKEND: Final = "backend.tfbackend"
"""The file that configures a remote backend for the state. `{key}` in it is replaced by the name of the workdir."""
TEMPLATE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
"""The form of names of templates."""
_RESERVE: Final = MIB
"""The minimum space in bytes that is reserved for a state that cannot be written to its place."""
_STATE: Final = "terraform.tfstate"
UNSAVED: Final = "errored.tfstate"
"""The file in which Terraform saves the state when it cannot write it to its place."""
_KEEP_SIZE: Final = 1
BUSY: Final = 75
"""The exit status if another process has the lock."""
_GONE: Final = ".gone-"
_NAME: Final = re.compile(r"[0-9a-f]{32}")
OnLine = Callable[[str], Awaitable[None]]


class Workdir:
    """A workdir. Its name is the hash of `key`, so that no text of a profile becomes a path. `copy` is the suffix for the name of a
    copy."""

    def __init__(self, root: Path, key: str, *, copy: str = "") -> None:
        self.name = sha256(key.encode()).hexdigest()[:32]
        self.path = root / f"{self.name}{copy}"
        self._key = key
        self._lock = self.path / ".lock"

    def prepare(self, template: Path | None) -> None:
        """Update the files of the template; None keeps them as they were."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / ".key").write_text(self._key)
        for output in (*self.path.glob(".*.out"), *self.path.glob(".*.err")):
            output.unlink(missing_ok=True)
        if template is None:
            return
        wanted = {path.name for path in template.iterdir()}
        for old in self._template_files() - wanted:
            with suppress(FileNotFoundError):
                (self.path / old).unlink()
        for path in template.iterdir():
            if path.is_dir():
                shutil.copytree(path, self.path / path.name, dirs_exist_ok=True)
            else:
                shutil.copy2(path, self.path / path.name)
        backend = self.path / BACKEND
        if backend.is_file():
            backend.write_text(backend.read_text().replace("{key}", self.name))
        (self.path / ".copied").write_text(json.dumps(sorted(path.name for path in template.iterdir() if path.is_file())))

    def copy_to(self, other: Workdir) -> None:
        """Copy the workdir, if it exists."""
        if self.path.exists():
            shutil.copytree(
                self.path,
                other.path,
                symlinks=True,
                ignore=shutil.ignore_patterns(".lock", UNSAVED, ".terraform.tfstate.lock.info"),
            )

    def reserve(self) -> None:
        """Reserve space for the state, in the file that Terraform uses on a full disk: blocks beyond the end of a file are used by
        what is written into it. Raises `OSError` if there is no space."""
        state = self._state()
        size = max(_RESERVE, 2 * state.stat().st_size if state.is_file() else 0)
        with (self.path / UNSAVED).open("ab") as file:
            _allocate(file.fileno(), size)

    @property
    def has_unsaved_state(self) -> bool:
        """True if Terraform could not write its last state to its place."""
        try:
            return (self.path / UNSAVED).stat().st_size > 0
        except FileNotFoundError:
            return False

    def save_state(self) -> bool:
        """Move an unsaved state to its place, over the previous one, without further space. Return False if it belongs to a remote
        backend."""
        if not self.has_unsaved_state:
            return True
        if self._backend()[0] not in (None, "local"):
            return False
        (self.path / UNSAVED).replace(self._state())
        return True

    def forget_unsaved_state(self) -> None:
        """Remove an unsaved state that the remote backend has received."""
        (self.path / UNSAVED).unlink()
        self.reserve()

    def _template_files(self) -> set[str]:
        try:
            return set(json.loads((self.path / ".copied").read_text()))
        except (FileNotFoundError, ValueError):
            return set()

    def shares_state(self) -> bool:
        """Return True if the backend, as it was initialized, stores the state in a place that other keys use, too."""
        kind, config = self._backend()
        if kind is None:
            return False  # the state is in the workdir
        if kind == "local":
            return not (self.path / (config.get("path") or "")).resolve().is_relative_to(self.path.resolve())
        return self.name not in json.dumps(config)

    def _backend(self) -> tuple[str | None, dict[str, Any]]:
        """Return the type of the initialized backend, None without one, and its configuration."""
        try:
            backend = json.loads((self.path / ".terraform" / "terraform.tfstate").read_text())["backend"]
            return backend["type"], backend["config"] or {}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None, {}

    def _state(self) -> Path:
        """Return the file of a state that is stored here."""
        kind, config = self._backend()
        return self.path / ((config.get("path") if kind == "local" else None) or _STATE)

    @property
    def purpose(self) -> str:
        """The purpose of the last run."""
        try:
            return (self.path / ".purpose").read_text()
        except FileNotFoundError:
            return ""

    def begin(self, purpose: str) -> None:
        (self.path / ".purpose").write_text(purpose)

    def holder(self) -> int | None:
        """Return the process that has the lock; None if there is none."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        return None if kind == fcntl.F_UNLCK else pid

    def signal_holder(self, number: signal.Signals) -> None:
        """Send a signal to the process that has the lock; SIGKILL goes to its whole group. The kernel has no positive number for a
        process of another machine or container."""
        process = self.holder()
        if process is not None and process > 0:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if number is signal.SIGKILL else os.kill)(process, number)

    def remove(self) -> None:
        """Remove the workdir, unless a program runs there or its state is not empty."""
        gone = self.path.with_name(f"{self.name}{_GONE}{uuid4().hex[:8]}")
        if self.path.exists() and self.holder() is None and self._has_no_objects():
            self.path.rename(gone)
            if Workdir(self.path.parent, self._key, copy=gone.name.removeprefix(self.name)).holder() is not None:
                gone.rename(self.path)  # another program has begun there at this moment
        for removed in self.path.parent.glob(f"*{_GONE}*"):
            shutil.rmtree(removed, ignore_errors=True)

    def _has_no_objects(self) -> bool:
        """Return True if the state here is empty. The state of a remote backend is stored there, except what Terraform could not
        write to it."""
        if self.has_unsaved_state:
            return False
        try:
            return not any(resource.get("mode") == "managed" for resource in json.loads(self._state().read_text())["resources"])
        except FileNotFoundError:
            return True
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            return False

    async def run(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        name: str,
        until: asyncio.Event,
        on_line: OnLine | None = None,
    ) -> RunningProgram:
        """Start a program. Its output goes to files, so the program continues and ends properly if this process dies."""
        out = self.path / f".{name}.{uuid4().hex[:8]}.out"  # another process may begin the same command
        with out.open("wb") as output, out.with_suffix(".err").open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_LAUNCH), str(self._lock), *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=self.path,
                env=dict(environment),
                start_new_session=True,
            )
        return RunningProgram(process, out, on_line=on_line, until=until)


def _allocate(descriptor: int, size: int) -> None:
    """Allocate blocks of the disk without changing the file's size. Without this function nothing is reserved."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None or fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
        return
    if (number := ctypes.get_errno()) not in (errno.EOPNOTSUPP, errno.ENOSYS):
        raise OSError(number, os.strerror(number))


def keys_below(root: Path) -> Sequence[str]:
    """Return the keys that have a workdir in this folder."""
    if not root.is_dir():
        return []
    return [(path / ".key").read_text() for path in root.iterdir() if _NAME.fullmatch(path.name) and (path / ".key").is_file()]


class ProgramDeadline:
    """The schedule for ending a program: after `seconds` it is interrupted, once, because Terraform stops at once after a second
    interruption; `grace` seconds later it is killed."""

    def __init__(self, *, seconds: float, grace: float) -> None:
        self._steps = [(time.monotonic() + seconds, signal.SIGINT), (time.monotonic() + seconds + grace, signal.SIGKILL)]
        self._over = time.monotonic() + seconds + grace + _AFTER_KILL

    def due(self) -> signal.Signals | None:
        """Return each signal once, when it is due."""
        if not self._steps or time.monotonic() < self._steps[0][0]:
            return None
        return self._steps.pop(0)[1]

    @property
    def in_vain(self) -> bool:
        return time.monotonic() > self._over


class RunningProgram:
    """A running program. It is interrupted when `until` is set, which takes it a while to follow."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        out: Path,
        *,
        on_line: OnLine | None,
        until: asyncio.Event,
    ) -> None:
        self._process = process
        self._out = out
        self._on_line = on_line
        self._until = until
        self._read = 0
        self.killed = False

    async def wait(self, *, seconds: float, grace: float) -> int:
        """Wait for the end and return the exit status. The program is interrupted after `seconds`, and killed `grace` seconds after
        an interruption."""
        clock = asyncio.get_running_loop().time
        due, interrupted = clock() + seconds, float("inf")
        waiting = start_task(self._process.wait(), what="provisioning programs")
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=_POLL)
            await self._follow()
            if interrupted == float("inf") and (self._until.is_set() or clock() > due) and not waiting.done():
                with suppress(ProcessLookupError):
                    self._process.send_signal(signal.SIGINT)
                interrupted = clock()
            if clock() - interrupted > grace and not self.killed and not waiting.done():
                self.killed = True
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        await self._follow()
        return waiting.result()

    def output(self) -> tuple[str, str]:
        """Return the output and the errors. This works once, since it removes both files."""
        texts = []
        for path in (self._out, self._out.with_suffix(".err")):
            texts.append(path.read_text(errors="replace"))
            path.unlink()
        return texts[0], texts[1]

    async def _follow(self) -> None:
        """Process the lines since the last call."""
        if self._on_line is None:
            return
        with self._out.open("rb") as output:
            output.seek(self._read)
            text = output.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            await self._on_line(line)
