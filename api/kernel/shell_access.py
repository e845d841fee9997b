"""The key of the home's own shells: commands of who may read the home call the running product with it, as `shell:<user>`.

It is made at every start, in a file that only the owner of the home can read. Who can read that has the master key and the database
as well, so the key opens nothing that is not open already.

A command sends it to nobody but the process that has locked the home and announced its address. A process id alone says nothing:
another process may have it by now, and another user's program the port.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

PREFIX: Final = "shell:"
_KEY: Final = re.compile(r"(shell:[A-Za-z0-9._@-]{1,64}):([A-Za-z0-9_-]{43})")
_SECRET_BYTES: Final = 32
_LONGEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Running:
    """The product that runs on a home. `database` is the hash of an external database's address; empty for the embedded one.
    `network` is its network namespace: in another one the same address is another machine's."""

    pid: int
    url: str
    database: str
    secret: str = field(repr=False)
    network: str

    def key(self, actor: str) -> str:
        return f"{actor}:{self.secret}"


def database_hash(url: str | None) -> str:
    return "" if url is None else hashlib.sha256(url.strip().encode()).hexdigest()


def announce(home: Path, *, url: str, database: str | None) -> None:
    """Tell commands on this home where the product is. Only the process that has locked the home does: `medialedger up`. In `url`
    is an address and no name, which might lead elsewhere later."""
    pid = os.getpid()
    if not _has_locked(pid, home):
        return
    running = Running(pid, url, database_hash(database), secrets.token_urlsafe(_SECRET_BYTES), _network())
    draft = home / f".running.{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps(asdict(running)))
    os.replace(draft, _file(home))


def holder_text(pid: int) -> str:
    """What the process that locks a home writes into the file `lock`: its id, for people, and what no other process has had."""
    return f"{pid}\n{_identity(pid)}\n"


def withdraw(home: Path) -> None:
    """Nothing runs on this home: the key of what ran there is of no more use."""
    for left in (_file(home), *home.glob(".running.*")):
        with suppress(OSError):
            left.unlink()


def running_product(home: Path) -> Running | None:
    """None where none runs on this home and in this network, or where the caller may not know."""
    found = _announced(home)
    return found if found is not None and _has_locked(found.pid, home) and found.network == _network() else None


class ShellKeys:
    """Finds the user of such a key, on the home of this process."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def user(self, key: str) -> str | None:
        """`shell:<user>`, or None for a key that is not right."""
        found = _KEY.fullmatch(key)
        running = None if found is None else _announced(self._home)
        if found is None or running is None or not hmac.compare_digest(found[2], running.secret):
            return None  # before anything that costs more: anybody can send a wrong key
        return found[1] if _has_locked(running.pid, self._home) else None


def _file(home: Path) -> Path:
    return home / "running.json"


def _announced(home: Path) -> Running | None:
    """By whatever process: perhaps it does not run any more."""
    try:
        return _read(home)
    except (OSError, ValueError, RecursionError):
        return None


def _read(home: Path) -> Running:
    """Raises ValueError for a file that others may have read or written, and for one that says anything else."""
    with open(os.open(_file(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise ValueError("it is open to others")
        found: Any = json.loads(file.read(_LONGEST))
    kinds = {"pid": int, "url": str, "database": str, "secret": str, "network": str}
    if not isinstance(found, dict) or {name: type(value) for name, value in found.items()} != kinds:
        raise ValueError("it is none of ours")
    if not found["secret"].isascii():
        raise ValueError("it is none of ours")
    return Running(**found)


def _has_locked(pid: int, home: Path) -> bool:
    """Whether this process lives and has locked the home. Nobody who asks is in the way of a start, as taking the lock would be.
    What a process has opened is closed to others, so the file says who took the lock: its end is the end of the lock."""
    try:
        with open(os.open(home / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            return file.read(_LONGEST) == holder_text(pid)
    except (OSError, ValueError):
        return False


def _identity(pid: int) -> str:
    """The start of the machine and of the process: another process that gets the same id has another one. Raises `OSError`."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # starttime of proc(5)
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {started}"


def _network() -> str:
    status = os.stat("/proc/self/ns/net")
    return f"{status.st_dev}:{status.st_ino}"
