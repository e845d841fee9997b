"""The directory of one infrastructure key: a copy of its template, its state, and the lock of the program that works there."""

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
"""Says where a remote backend keeps the state. `{key}` in it stands for the name of the workdir."""
TEMPLATE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
"""Names of templates."""
_RESERVE: Final = MIB
"""Bytes, at least: of the space for a state that cannot be written where it belongs."""
_STATE: Final = "terraform.tfstate"
UNSAVED: Final = "errored.tfstate"
"""Terraform writes the state here when it cannot write it where it belongs."""
_KEEP_SIZE: Final = 1
BUSY: Final = 75
"""The exit status where another process holds the lock."""
_GONE: Final = ".gone-"
_NAME: Final = re.compile(r"[0-9a-f]{32}")
OnLine = Callable[[str], Awaitable[None]]


class Workdir:
    """`key` names it by its hash, so that no text of a profile becomes a path. `copy` is what a copy beside it has in its name."""

    def __init__(self, root: Path, key: str, *, copy: str = "") -> None:
        self.name = sha256(key.encode()).hexdigest()[:32]
        self.path = root / f"{self.name}{copy}"
        self._key = key
        self._lock = self.path / ".lock"

    def prepare(self, template: Path | None) -> None:
        """With the files of the template as they are now; None: as they were."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / ".key").write_text(self._key)
        for left in (*self.path.glob(".*.out"), *self.path.glob(".*.err")):
            left.unlink(missing_ok=True)
        if template is None:
            return
        wanted = {path.name for path in template.iterdir()}
        for old in self._copied() - wanted:
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
        """Nothing, where there is none yet."""
        if self.path.exists():
            shutil.copytree(
                self.path,
                other.path,
                symlinks=True,
                ignore=shutil.ignore_patterns(".lock", UNSAVED, ".terraform.tfstate.lock.info"),
            )

    def reserve(self) -> None:
        """Space for the state, in the file that Terraform turns to on a full disk: blocks beyond the end of a file go to what is
        written into it. Raises `OSError` where there is none."""
        state = self._state()
        size = max(_RESERVE, 2 * state.stat().st_size if state.is_file() else 0)
        with (self.path / UNSAVED).open("ab") as file:
            _allocate(file.fileno(), size)

    @property
    def has_unsaved_state(self) -> bool:
        """Whether Terraform could not write its last state where it belongs."""
        try:
            return (self.path / UNSAVED).stat().st_size > 0
        except FileNotFoundError:
            return False

    def save_state(self) -> bool:
        """Put an unsaved state where it belongs: over what is left of the one before, without further space. False: it belongs to a
        remote backend."""
        if not self.has_unsaved_state:
            return True
        if self._backend()[0] not in (None, "local"):
            return False
        (self.path / UNSAVED).replace(self._state())
        return True

    def forget_unsaved_state(self) -> None:
        """After a remote backend has it."""
        (self.path / UNSAVED).unlink()
        self.reserve()

    def _copied(self) -> set[str]:
        try:
            return set(json.loads((self.path / ".copied").read_text()))
        except (FileNotFoundError, ValueError):
            return set()

    def shares_state(self) -> bool:
        """Whether the backend, as it was initialized, keeps the state in a place that is not this key's own."""
        kind, config = self._backend()
        if kind is None:
            return False  # the state lies in the workdir
        if kind == "local":
            return not (self.path / (config.get("path") or "")).resolve().is_relative_to(self.path.resolve())
        return self.name not in json.dumps(config)

    def _backend(self) -> tuple[str | None, dict[str, Any]]:
        """As it was initialized: its type, None without one, and its configuration."""
        try:
            backend = json.loads((self.path / ".terraform" / "terraform.tfstate").read_text())["backend"]
            return backend["type"], backend["config"] or {}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None, {}

    def _state(self) -> Path:
        """The file of a state that is kept here."""
        kind, config = self._backend()
        return self.path / ((config.get("path") if kind == "local" else None) or _STATE)

    @property
    def purpose(self) -> str:
        """What the last run was for."""
        try:
            return (self.path / ".purpose").read_text()
        except FileNotFoundError:
            return ""

    def begin(self, purpose: str) -> None:
        (self.path / ".purpose").write_text(purpose)

    def holder(self) -> int | None:
        """The process of the program that works there; None where there is none."""
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
        """SIGKILL goes to its whole group. The kernel has no positive number for a process of another machine or container."""
        process = self.holder()
        if process is not None and process > 0:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if number is signal.SIGKILL else os.kill)(process, number)

    def remove(self) -> None:
        """Unless a program works there, or the state that it has is not empty."""
        gone = self.path.with_name(f"{self.name}{_GONE}{uuid4().hex[:8]}")
        if self.path.exists() and self.holder() is None and self._has_no_objects():
            self.path.rename(gone)
            if Workdir(self.path.parent, self._key, copy=gone.name.removeprefix(self.name)).holder() is not None:
                gone.rename(self.path)  # somebody has begun there in this moment
        for left in self.path.parent.glob(f"*{_GONE}*"):
            shutil.rmtree(left, ignore_errors=True)

    def _has_no_objects(self) -> bool:
        """Of a state that is here; one of a remote backend is kept there, but for what Terraform could not write to it."""
        if self.has_unsaved_state:
            return False
        try:
            return not any(one.get("mode") == "managed" for one in json.loads(self._state().read_text())["resources"])
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
    ) -> Running:
        """Start a program. Its output goes to files: it goes on, and ends well, where this process does not."""
        out = self.path / f".{name}.{uuid4().hex[:8]}.out"  # another process may begin the same
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
        return Running(process, out, on_line=on_line, until=until)


def _allocate(descriptor: int, size: int) -> None:
    """Blocks of the disk, without a change of the file's size. A system or file system that cannot do that reserves none."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None or fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
        return
    if (number := ctypes.get_errno()) not in (errno.EOPNOTSUPP, errno.ENOSYS):
        raise OSError(number, os.strerror(number))


def keys_below(root: Path) -> Sequence[str]:
    """The keys that have a workdir there."""
    if not root.is_dir():
        return []
    return [(path / ".key").read_text() for path in root.iterdir() if _NAME.fullmatch(path.name) and (path / ".key").is_file()]


class Ending:
    """The kind end of a program, by the clock: after `seconds` an interruption, once, since Terraform takes a second one for an
    order to stop at once; `grace` seconds later SIGKILL."""

    def __init__(self, *, seconds: float, grace: float) -> None:
        self._steps = [(time.monotonic() + seconds, signal.SIGINT), (time.monotonic() + seconds + grace, signal.SIGKILL)]
        self._over = time.monotonic() + seconds + grace + _AFTER_KILL

    def due(self) -> signal.Signals | None:
        """The signal whose time has come, once."""
        if not self._steps or time.monotonic() < self._steps[0][0]:
            return None
        return self._steps.pop(0)[1]

    @property
    def in_vain(self) -> bool:
        return time.monotonic() > self._over


class Running:
    """A program that runs. `until`: when it is set the program is interrupted, which it may take a while to follow."""

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

    async def ended(self, *, seconds: float, grace: float) -> int:
        """Its exit status. After `seconds` it is interrupted, and `grace` seconds after an interruption killed."""
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
        """What it wrote, and its errors. Once: both files are gone then."""
        texts = []
        for path in (self._out, self._out.with_suffix(".err")):
            texts.append(path.read_text(errors="replace"))
            path.unlink()
        return texts[0], texts[1]

    async def _follow(self) -> None:
        """The lines since the last time."""
        if self._on_line is None:
            return
        with self._out.open("rb") as output:
            output.seek(self._read)
            text = output.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            await self._on_line(line)
